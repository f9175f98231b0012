def greeting():
    return "Good morning"


if __name__ == "__main__":
    print(greeting())
