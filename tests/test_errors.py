"""A complaint names what was given, where that has another name than the code knows."""

import pytest

from p2p_labeldp.errors import ConfigurationError, naming


def told(field, words):
    with pytest.raises(ConfigurationError) as caught, naming(words):
        raise ConfigurationError("0 given; more is needed: 1", field=field)
    return caught.value


def test_a_known_field_is_named_by_its_word_and_the_rest_of_the_line_stays():
    said = told("mechanism.target_epsilon", {"mechanism.target_epsilon": "--epsilon"})
    assert (str(said), said.field) == ("--epsilon: 0 given; more is needed: 1", "--epsilon")
    assert isinstance(said.__cause__, ConfigurationError)


@pytest.mark.parametrize("field", ["mechanism.floor", None])
def test_another_field_and_none_stay_as_they_are(field):
    words = {"mechanism.target_epsilon": "--epsilon"}
    assert str(told(field, words)) == str(told(field, {}))
