"""The templates of a report's charts are valid in the version of Vega-Lite that draws them."""

import altair
import pytest
from thalweg.report.drawing.charts import templates


@pytest.mark.parametrize("name", templates())
def test_every_template_is_vega_lite(name: str) -> None:
    template = templates()[name]
    read = altair.Chart.from_dict(template).to_dict()  # raises an exception if the chart is invalid
    assert {key: value for key, value in read.items() if key in template} == template
