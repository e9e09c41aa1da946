/** One stream for all tabs: a browser opens only six connections to an HTTP/1.1 server, and each tab would take one for good. */
import type { FeedMessage } from './messages.ts'
import { openSource } from './source.ts'

interface SharedScope {
  onconnect: ((event: MessageEvent) => void) | null
}

const ports = new Set<MessagePort>()
let status: FeedMessage | undefined
let hello: FeedMessage | undefined
let close: (() => void) | undefined

function tell(message: FeedMessage): void {
  if (message.kind === 'status') status = message
  else if (message.event.event === 'hello') hello = message
  for (const port of ports) port.postMessage(message)
}

;(globalThis as unknown as SharedScope).onconnect = ({ ports: [port] }) => {
  if (port === undefined) return
  ports.add(port)
  if (status !== undefined) port.postMessage(status)
  if (hello !== undefined) port.postMessage(hello)
  // A page that goes away says so; one that crashed is a port to nobody, which costs next to nothing.
  port.onmessage = () => {
    ports.delete(port)
    port.close()
    if (ports.size > 0) return
    close?.()
    close = undefined
  }
  close ??= openSource(tell)
}
