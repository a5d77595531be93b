"""The command as a module: `python -m tilesmith`."""

from tilesmith.app.cli import main

if __name__ == "__main__":
    main()
