"""An inference server that speaks Triton's protocols, with the service of Triton's own client: its model adds up each row of its input. Prints
its two ports (gRPC, HTTP), and "grpc REQUEST ANSWER" with the bytes of the messages of each call."""

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

DELAY_S = float(sys.argv[1]) if len(sys.argv) > 1 else 0
MODEL = {"name": "sums", "inputs": [{"name": "in", "datatype": "FP32", "shape": [-1, 4]}],
         "outputs": [{"name": "out", "datatype": "FP32", "shape": [-1, 1]}]}
BATCH = 1000


def sums(data):
    time.sleep(DELAY_S)
    return np.frombuffer(data, dtype=np.float32).reshape(-1, 4).sum(axis=1)


def answered(request, answer):
    # one write, as other threads write, too
    os.write(1, f"grpc {request.ByteSize()} {answer.ByteSize()}\n".encode())
    return answer


class Service(service_pb2_grpc.GRPCInferenceServiceServicer):
    def ModelMetadata(self, request, context):
        answer = service_pb2.ModelMetadataResponse(name=request.name)
        for kind in "inputs", "outputs":
            for tensor in MODEL[kind]:
                getattr(answer, kind).add(**tensor)
        return answered(request, answer)

    def ModelConfig(self, request, context):
        answer = service_pb2.ModelConfigResponse()
        answer.config.max_batch_size = BATCH
        return answered(request, answer)

    def ModelInfer(self, request, context):
        if request.model_name != MODEL["name"]:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such model")
        found = sums(request.raw_input_contents[0])
        answer = service_pb2.ModelInferResponse(model_name=request.model_name)
        answer.outputs.add(name="out", datatype="FP32", shape=[len(found), 1])
        answer.raw_output_contents.append(found.tobytes())
        return answered(request, answer)

    def ModelStreamInfer(self, requests, context):
        for request in requests:
            yield service_pb2.ModelStreamInferResponse(infer_response=self.ModelInfer(request, context))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        body, head_bytes = self.rfile.read(int(self.headers["Content-Length"])), int(self.headers["Inference-Header-Content-Length"])
        found = sums(body[head_bytes:])
        output = {"name": "out", "datatype": "FP32", "shape": [len(found), 1], "parameters": {"binary_data_size": found.nbytes}}
        head = json.dumps({"model_name": MODEL["name"], "outputs": [output]}).encode()
        self.send_response(200)
        self.send_header("Inference-Header-Content-Length", str(len(head)))
        self.send_header("Content-Length", str(len(head) + found.nbytes))
        self.end_headers()
        self.wfile.write(head + found.tobytes())


def main():
    server = grpc.server(ThreadPoolExecutor(8))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    print(port, web.server_address[1], flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
