"""The templates of a report's charts follow the grammar of Vega-Lite, in the version that draws them."""

import altair
import pytest
from thalweg.report.drawing.charts import templates


@pytest.mark.parametrize("name", templates())
def test_every_template_is_vega_lite(name: str) -> None:
    template = templates()[name]
    read = altair.Chart.from_dict(template).to_dict()  # raises where the grammar does not allow it
    assert {key: value for key, value in read.items() if key in template} == template
