"""`python -m weft` is the `weft` command; torchrun starts it this way."""

from weft.commands.main import main

if __name__ == "__main__":
    main()
