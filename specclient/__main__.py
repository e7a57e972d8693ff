"""`python -m specclient` is the command `specclient`."""

from specclient.cli.main import main

main()
