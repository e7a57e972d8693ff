"""An OpenAI-compatible server over the configured targets, the embedded engine among them.

    specclient serve                       # http://127.0.0.1:8377/v1, a target's name as the model

Import this package only where starlette and uvicorn are installed (`pip install 'specclient[serve]'`).
"""

try:
    from specclient.config.serving import ServeSettings
    from specclient.gateway.app import create_app
    from specclient.gateway.run import serve
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "prometheus_client"):
        raise
    raise ModuleNotFoundError(
        f"Serving needs {error.name}: pip install 'specclient[serve]'.", name=error.name
    ) from None

__all__ = ["ServeSettings", "create_app", "serve"]
