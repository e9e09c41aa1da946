/** A part of an open file as a stream of bytes. Reads into what its reader brings along, so that long contents leave no garbage behind. */
import type { FileHandle } from 'node:fs/promises'

const chunkBytes = 65_536

/** Closes the file when it is read, cancelled or broken. */
export async function fileStream(handle: FileHandle, start: number, end: number): Promise<ReadableStream<Uint8Array>> {
  if (end <= start) await handle.close()
  let at = start
  return new ReadableStream({
    type: 'bytes',
    start(controller) {
      if (end <= start) controller.close()
    },
    async pull(controller) {
      const request = controller.byobRequest
      const into = target(request, Math.min(chunkBytes, end - at))
      const bytesRead = await handle.read(into, 0, into.length, at).then(
        done => done.bytesRead,
        error => closing(handle, error),
      )
      if (bytesRead === 0) await closing(handle, new Error('The file is shorter than it was'))
      at += bytesRead
      if (at === end) await handle.close()
      if (request === null) controller.enqueue(into.subarray(0, bytesRead))
      else request.respond(bytesRead)
      if (at === end) controller.close()
    },
    cancel: () => handle.close(),
  })
}

function target(request: ReadableStreamBYOBRequest | null, bytes: number): Uint8Array<ArrayBuffer> {
  const view = request?.view ?? undefined
  if (view === undefined) return new Uint8Array(bytes)
  return new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, Math.min(view.byteLength, bytes))
}

async function closing(handle: FileHandle, error: unknown): Promise<never> {
  await handle.close()
  throw error
}
