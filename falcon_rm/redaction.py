"""
What looks like a secret, and how it is blotted out of a text that leaves the process.

1. Known secrets go wherever they stand; of others their form must tell: a header, a URL, a key that says password.
2. It imports next to nothing: whoever complains in one line asks it too.
"""

import re
from collections.abc import Iterable

SECRETS = (
    (re.compile(r"(?i)((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{3,}"), r"\1***"),
    (re.compile(r"\bya29\.[A-Za-z0-9._-]+"), "***"),  # a Google access token
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), "***"),  # a signed token, such as a service account's
    (
        re.compile(
            r"(?i)\b(\w*(?:token|password|passwd)[\"']?\s*[:=]\s*)"
            r"(?!YES\b|NO\b)(?:\"[^\"]*\"|'[^']*'|[^\s\"',;&)]+)"
        ),
        r"\1***",
    ),
    (re.compile(r"(\w+://[^:@/\s]*):(?!PASSWORD\]@)\S*@"), r"\1:***@"),  # [:PASSWORD] is how a URL's form is told
)
"""What looks like a secret, and what is left of it."""


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return *text* without *secrets* and without what looks like one."""
    for secret in secrets:
        text = text.replace(secret, "***") if secret else text
    for pattern, rest in SECRETS:
        text = pattern.sub(rest, text)
    return text
