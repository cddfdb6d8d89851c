# rlea for the CPU. Not built by the tests. docker build -t rlea . && docker run --rm -v "$PWD:/data" rlea align a.nt b.nt --output out
FROM python:3.11-slim

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# The index of torch has builds without CUDA; all else comes from PyPI.
RUN pip install --no-cache-dir -c constraints.txt --index-url https://download.pytorch.org/whl/cpu torch \
    && pip install --no-cache-dir -c constraints.txt .

# Not as root; compiled code is kept where the user may write.
RUN useradd --create-home rlea && mkdir /cache /data && chown rlea /cache /data
ENV NUMBA_CACHE_DIR=/cache
USER rlea
WORKDIR /data
ENTRYPOINT ["rlea"]
CMD ["--help"]
