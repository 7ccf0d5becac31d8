"""A form with a file in it, as browsers send one."""

EDGE = "------------edge"
KIND = f"multipart/form-data; boundary={EDGE}"


def form(name: str, data: bytes, **fields: str) -> bytes:
    """The body: `fields`, and a file of this name."""
    parts = [
        f'--{EDGE}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in fields.items()
    ]
    head = f'--{EDGE}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    parts.append(f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + data + b"\r\n")
    return b"".join(parts) + f"--{EDGE}--\r\n".encode()
