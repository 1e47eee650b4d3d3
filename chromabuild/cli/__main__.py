"""``python -m chromabuild.cli`` does what the console script does."""

from chromabuild.cli import main

main()
