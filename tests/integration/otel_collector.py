"""A real OpenTelemetry Collector, compiled from Debian's packages of its source: it receives OTLP over HTTP and sends on what it
accepted, as JSON."""

import contextlib
import os
import shutil
import subprocess

import cluster
import packages

MAIN = """
package main

import (
	"log"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func factories() (otelcol.Factories, error) {
	receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	exporters, err := otelcol.MakeFactoryMap[exporter.Factory](otlphttpexporter.NewFactory())
	return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: otelconftelemetry.NewFactory()}, err
}

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(),
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{DefaultScheme: "file", ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()}},
		},
	})
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}
"""
CONFIG = """
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}
exporters:
  otlphttp: {{endpoint: "{to}", encoding: json, compression: gzip, sending_queue: {{enabled: false}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [otlphttp]}}}}
"""


def build(place):
    """Takes two minutes, and 3 GB until the program is there."""
    sources = place.with_name(f"{place.name}.sources")
    shutil.rmtree(sources, ignore_errors=True)
    try:
        if not packages.of_release("sid", sources, ["golang-opentelemetry-collector-dev", "golang-go"], []):
            return False
        own = sources / "own" / "src" / "otelcol"
        own.mkdir(parents=True)
        (own / "main.go").write_text(MAIN)
        (root,) = sources.glob("usr/lib/go-*")
        env = {**os.environ, "GOROOT": str(root), "GOPATH": f"{sources / 'own'}:{sources}/usr/share/gocode", "GO111MODULE": "off",
               "CGO_ENABLED": "0", "GOCACHE": str(sources / "cache"), "GOFLAGS": "", "GOTOOLCHAIN": "local"}
        place.mkdir(parents=True)
        return subprocess.run([root / "bin" / "go", "build", "-o", place / "otelcol", "otelcol"], env=env).returncode == 0
    finally:
        shutil.rmtree(sources, ignore_errors=True)


@contextlib.contextmanager
def running(folder, to):
    """The URL of a Collector that sends what it accepts to the one at `to`."""
    program = packages.made_or_skip("otelcol", build) / "otelcol"
    port = cluster.free_port()
    (folder / "otel.yaml").write_text(CONFIG.format(port=port, to=to))
    process = cluster.Process("otelcol", [program, "--config", f"file:{folder / 'otel.yaml'}"], folder / "otel.log")
    try:
        cluster.wait_until(lambda: "Everything is ready" in process.text(), "the OpenTelemetry Collector", 60, [process])
        yield f"http://127.0.0.1:{port}"
    finally:
        process.stop()
