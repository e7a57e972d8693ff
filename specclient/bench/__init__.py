"""Does a prediction pay, on this traffic and this target? Measured in pairs, told with its uncertainty.

    cases = workloads.built_in(("code_edit", "chat"))        # or workloads.from_jsonl(path)
    trials = schedule.blocks(cases, clients=(1, 8), repeats=3, seed=0)
    samples = asyncio.run(runner.Runner(client, path).run(trials))
    summary = summary.summarise(samples, …)                  # -> table, JSON, HTML page

A case is a request with the text that is expected in its answer. It is run in two arms, without and with
that text, one right after the other in random order, so that whatever drifts meets both.
"""
