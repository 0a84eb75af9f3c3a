# Two images from one file. `docker build --target demo .` has the example's table and its script,
# for docker-compose.yml. The last stage, the default, is the image of a real site: umpc alone.
FROM python:3.11-slim AS build

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv --without-pip /opt/umpc

# Pinned and hashed (`make requirements`), in a layer that only this file renews.
WORKDIR /src
COPY deploy/requirements.txt ./
RUN python -m pip --python /opt/umpc/bin/python install --no-compile --require-hashes --only-binary :all: \
      --requirement requirements.txt

# The wheel, with the compiled gate. The compiler and hatchling stay in this stage. EXTRAS, such as
# people-page,sql, are optional parts (pyproject.toml), whose packages are not pinned.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml README.md ./
COPY native native
COPY umpc umpc
COPY umpc_papers umpc_papers
ARG EXTRAS=
RUN UMPC_BUILD_NATIVE=1 python -m pip wheel --quiet --no-deps --wheel-dir /wheel . \
 && python -m pip --python /opt/umpc/bin/python install --no-compile --no-deps /wheel/*.whl \
 && if [ -n "$EXTRAS" ]; then python -m pip --python /opt/umpc/bin/python install --no-compile \
      "$(echo /wheel/*.whl)[$EXTRAS]"; fi \
# Nothing runs the libraries' own tests, and no compiler reads their headers.
 && cd /opt/umpc/lib/python3.11/site-packages \
 && find . \( -name tests -o -name include \) -type d -prune -exec rm -rf {} + \
 && find . \( -name '*.pyi' -o -name '*.pxd' -o -name '*.a' \) -delete


FROM build AS demo
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['demo'], sep='\n')" > demo.txt \
 && python -m pip --python /opt/umpc/bin/python install --no-compile --requirement demo.txt \
 && useradd --uid 1000 --no-create-home umpc \
 && install -d -o umpc -g umpc -m 0700 /authority /enrolment /site
COPY deploy deploy
ENV PATH=/opt/umpc/bin:$PATH PYTHONUNBUFFERED=1
USER umpc
WORKDIR /site
ENTRYPOINT ["python", "/src/deploy/container.py"]


FROM python:3.11-slim AS site
COPY --from=build /opt/umpc /opt/umpc
RUN useradd --uid 1000 --no-create-home umpc && install -d -o umpc -g umpc -m 0700 /site /ledger
ENV PATH=/opt/umpc/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 1000:1000
WORKDIR /site
ENTRYPOINT ["umpc"]
CMD ["node", "start", "--config", "/site/node.toml"]
