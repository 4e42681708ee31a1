"""The exit statuses of the command, which scripts rely on."""

#: It did what was asked for. The new model of `gate` is better or equivalent.
DONE = 0

#: The new model of `gate` is worse.
WORSE = 1

#: `gate` cannot tell.
UNDECIDED = 2

#: An option or a file is wrong, or something is not installed. Nothing was printed as a result.
WRONG = 3

#: It was interrupted, as shells say it of Ctrl-C.
INTERRUPTED = 130
