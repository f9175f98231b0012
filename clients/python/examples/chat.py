"""A chat in the terminal: python3 chat.py [THREAD]

Ends with the end of the input. Ctrl-C interrupts the turn.
"""

import sys

from codex_embed import Codex, Question, approvals, events


def plain(text: object) -> str:
    """Text without control characters: the model and the commands that it runs are not trusted with the terminal."""
    return "".join(letter for letter in str(text) if letter.isprintable() or letter in "\n\t")


def decide(question: Question) -> approvals.Decision:
    """Asks the person. The connection goes on meanwhile."""
    params = question.params if isinstance(question.params, dict) else {}
    subject = params.get("command") or params.get("reason") or question.method
    answer = input(f"\nallow {plain(subject)}? [y/N] ")
    return approvals.allow() if answer.strip().lower() == "y" else approvals.deny("the user said no")


def show(event: events.Event) -> None:
    match event:
        case events.Delta(part="message", text=text):
            print(plain(text), end="", flush=True)
        case events.ItemStarted(item={"type": "commandExecution", "command": command}):
            print(f"\n$ {plain(command)}")
        case events.Error(message=message) | events.Warning(message=message):
            print(f"\n! {plain(message)}")
        case events.TurnEnded(status=status):
            print("" if status == "completed" else f"\n({status})")


def main() -> None:
    with Codex(approvals=decide) as codex:
        thread = codex.thread_resume(sys.argv[1]) if len(sys.argv) > 1 else codex.thread_start()
        while True:
            try:
                prompt = input("> ")
            except EOFError:
                break
            if not prompt.strip():
                continue
            turn = thread.turn(prompt)
            try:
                for event in turn.stream():
                    show(event)
            except KeyboardInterrupt:
                turn.interrupt()
        print(f"\nthread {thread.id}")


if __name__ == "__main__":
    main()
