"""What a call says in warnings."""

import warnings


def warnings_of(call, *arguments, **options):
    """The texts of all warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments, **options)
    return [str(warning.message) for warning in caught]
