"""Valid JSON with faults in it, for laws of readers."""

import copy

from hypothesis import strategies as st

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=5,
)


def places_of(value, place=()):
    """Yields the path (a list of keys) of each value in a nested value."""
    yield place
    keys = range(len(value)) if isinstance(value, list) else value if type(value) is dict else ()
    for key in keys:
        yield from places_of(value[key], (*place, key))


@st.composite
def mutations(draw, valid, *likely):
    """Draws one of valid values, in which some inner values are replaced, removed, or moved.

    Args:
      valid: list of JSON values.
      likely: values that are often drawn as replacements.
    """
    found = copy.deepcopy(draw(st.sampled_from(valid)))
    places = list(places_of(found))[1:]
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places))
        holder = found
        try:
            for key in place[:-1]:
                holder = holder[key]
            if draw(st.booleans()):
                holder[place[-1]] = draw(VALUES | st.sampled_from([*likely, "Q\n1", "\ud83d"]))
            elif draw(st.booleans()):
                del holder[place[-1]]
            else:
                holder[place[-1]] = copy.deepcopy(draw(st.sampled_from([found, holder])))
        except (LookupError, TypeError):
            continue  # another change has removed it
    return found
