/**
 * Cuts readers that do not read. Node's own socket timeout starts anew with every byte that the other end sends, so that
 * it could hold an answer for ever by talking on: here only what is taken counts.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How often a reader is looked at in the time that it has. */
const looks = 4

/** Destroys the response when nothing of it was taken for `stallMs`. Gives what calls it off. */
export function cutWhenStalled(res: ServerResponse, stallMs: number): () => void {
  let before = takenBy(res.socket)
  let idle = 0
  const timer = setInterval(() => {
    const taken = takenBy(res.socket)
    idle = taken === before ? idle + 1 : 0
    before = taken
    if (idle >= looks) res.destroy()
  }, stallMs / looks)
  timer.unref()
  const stop = (): void => clearInterval(timer)
  res.once('close', stop)
  return stop
}

/** Changes whenever the kernel takes something: whole writes, and what is left of the one under way where Node shows it. */
function takenBy(socket: Socket | null): string {
  if (socket === null) return ''
  const handle: unknown = '_handle' in socket ? socket._handle : undefined
  const left = typeof handle === 'object' && handle !== null && 'writeQueueSize' in handle ? handle.writeQueueSize : ''
  return `${socket.bytesWritten - socket.writableLength} ${left}`
}
