"""What the rows of a result are called."""

from typing import NamedTuple

from pyg_recmetrics.messages import singular


def those_who(noun: str) -> str:
    """Returns such as "users who", with the pronoun of persons or of things."""
    return f"{noun} {'who' if noun in ('users', 'persons') else 'that'}"


class Nouns(NamedTuple):
    """What a result is about, in the plural.

    Attributes:
        users: What has truth: `"users"` or `"queries"`.
        rows: What each row is: one of these, or `"edges"`.
        means: What its means are over: these rows, or `"persons"`.
        drawn: What its intervals draw: `"users"`, `"queries"` or `"persons"`.
    """

    users: str
    rows: str
    means: str
    drawn: str

    @property
    def user(self) -> str:
        """One of the users."""
        return singular(self.users)


#: The nouns where every row is a user, and every user a person.
USERS = Nouns("users", "users", "users", "users")

#: The nouns where every row is a query of its own.
QUERIES = Nouns("queries", "queries", "queries", "queries")
