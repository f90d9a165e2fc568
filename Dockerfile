# falcon-rm for a cluster: a small image without pip, compilers or keys, for a numeric user and a read-only root.
# No RUN of the second stage and nothing at run time needs a shell. hack/image builds it and says how.
#
# The base has Python 3.11 and the C and C++ libraries that grpcio is built for. Where images are built for use, pin its
# digest:
#   hack/image --build-arg BASE=python:3.11.14-slim-bookworm@sha256:...
ARG BASE=python:3.11.14-slim-bookworm

FROM ${BASE} AS build
# Every file gets this time, so the same source gives the same layers.
ARG SOURCE_DATE_EPOCH=0
# requirements-cloudsql.lock adds what logs in to Cloud SQL without a password.
ARG LOCK=requirements.lock
WORKDIR /src
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1
COPY hack/requirements*.lock hack/
# pip's own settings, if the builder has some, are there for one command and in no layer.
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=pip-ca,target=/run/pip-ca.pem \
    python3 -m venv --without-pip /opt/falcon \
    && python3 -m venv /build \
    && /build/bin/pip install --require-hashes --only-binary :all: -r hack/requirements-build.lock \
    && /build/bin/pip --python /opt/falcon/bin/python3 install --require-hashes --only-binary :all: -r "hack/${LOCK}"
COPY setup.cfg pyproject.toml LICENSE README.md ./
COPY sql sql
COPY falcon_rm falcon_rm
# Compiled here, since nothing can be written there: by content, not by time, so it is the same each time.
RUN /build/bin/pip wheel --no-index --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /build/bin/pip --python /opt/falcon/bin/python3 install --no-index --no-deps /wheels/*.whl \
    && /opt/falcon/bin/python3 -m compileall -q --invalidation-mode unchecked-hash /opt/falcon/lib \
    && find /opt/falcon -exec touch --no-dereference --date="@${SOURCE_DATE_EPOCH}" {} +

FROM ${BASE}
COPY --from=build /opt/falcon /opt/falcon
ENV PATH=/opt/falcon/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# The kubelet and Prometheus come to the pod's own address; outside an image nothing listens unless it is asked for.
ENV FALCON_METRICS_ADDRESS=0.0.0.0:8080
USER 65532:65532
ENTRYPOINT ["falcon-rm"]
CMD ["run"]
