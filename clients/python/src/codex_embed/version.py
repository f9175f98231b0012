"""The version of this package."""

VERSION = "0.200.0"
