"""Ways to read a file, on a worker; each returns the (offset, length) of its reads, in order, or
None if the descriptor's position cannot be followed."""

import os
import threading


def opened(path, flags=os.O_RDONLY):
    return os.open(path, flags)


def same_range_twice(path):
    fd = opened(path)
    return [(offset, len(os.pread(fd, 1000, offset))) for offset in (500, 500, 4000)]


def overlapping(path):
    fd = opened(path)
    return [(offset, len(os.pread(fd, length, offset)))
            for offset, length in ((0, 100_000), (50_000, 100_000), (90_000, 20_000), (300_000, 10))]


def on_and_on(path):
    fd = opened(path)
    return [(k * 300, len(os.read(fd, 300))) for k in range(50)]


def seek_and_read(path):
    fd, found = opened(path), []
    for where, whence in ((1000, os.SEEK_SET), (500, os.SEEK_CUR), (-2000, os.SEEK_END), (0, os.SEEK_SET)):
        at = os.lseek(fd, where, whence)
        found.append((at, len(os.read(fd, 1500))))
    return found


def vectors(path):
    fd = opened(path)
    found = [(0, os.readv(fd, [bytearray(100), bytearray(200)])), (300, os.readv(fd, [bytearray(50)]))]
    return [*found, (320, os.preadv(fd, [bytearray(70), bytearray(70)], 320)), (350, len(os.read(fd, 10)))]


def past_the_end(path):
    fd, size = opened(path), os.path.getsize(path)
    os.lseek(fd, size - 10, os.SEEK_SET)
    found = [(size - 10, len(os.read(fd, 100))), (size, len(os.read(fd, 100)))]
    return [*found, (size - 5, len(os.pread(fd, 100, size - 5))), (2 * size, len(os.pread(fd, 100, 2 * size)))]


def two_descriptors(path):
    a, b = opened(path), opened(path)
    return [(0, len(os.read(a, 700))), (0, len(os.read(b, 300))), (700, len(os.read(a, 700))), (300, len(os.read(b, 300)))]


def append(path):
    """Writing moves the position to the end; reading starts at the beginning."""
    fd, size = opened(path, os.O_RDWR | os.O_APPEND), os.path.getsize(path)
    found = [(0, len(os.read(fd, 100)))]
    os.write(fd, b"x" * 50)
    found.append((size + 50, len(os.read(fd, 100))))
    os.lseek(fd, size, os.SEEK_SET)
    return [*found, (size, len(os.read(fd, 100)))]


def sent_on(path):
    """sendfile reads too, at the position or elsewhere."""
    fd, other = opened(path), opened(path + ".copy", os.O_WRONLY | os.O_CREAT)
    found = [(0, len(os.read(fd, 100)))]
    found.append((100, os.sendfile(other, fd, None, 5000)))
    found.append((5100, len(os.read(fd, 100))))
    return [*found, (5000, os.sendfile(other, fd, 5000, 300)), (5200, len(os.read(fd, 100)))]


def shared_position(path):
    """Two threads read one descriptor: each byte is read once, by either thread."""
    fd, found = opened(path), []

    def work():
        while data := os.read(fd, 4096):
            found.append(len(data))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [(0, sum(found))]


def duplicated(path):
    fd = opened(path)
    copy = os.dup(fd)
    os.read(fd, 1000)
    os.read(copy, 1000)
    return None


EXACT = [same_range_twice, overlapping, on_and_on, seek_and_read, vectors, past_the_end, two_descriptors, append,
         sent_on, shared_position]


def run(name, path):
    return globals()[name](path)


def distinct(ranges):
    """Bytes in at least one of the ranges."""
    total, end = 0, 0
    for offset, length in sorted(ranges):
        total += max(0, offset + length - max(offset, end))
        end = max(end, offset + length)
    return total
