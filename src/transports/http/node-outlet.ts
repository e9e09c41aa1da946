/**
 * An event stream on a node:http response. What is said in the first turn of the event loop is held back to its end:
 * a stream that is over by then goes out as one write with a length, like a JSON answer.
 */
import type { ServerResponse } from 'node:http'
import { byteLength } from './event.ts'
import type { Outlet, OutletOwner, Tenant } from './outlet.ts'
import { cutWhenStalled } from './stall.ts'

/** Characters held back before the headers go out. */
const mostHeld = 64 * 1024

export class NodeOutlet implements Outlet {
  owner: OutletOwner | undefined = undefined
  readonly tenant: Tenant | undefined
  silence = 0
  blocked = false
  readonly #res: ServerResponse
  readonly #stallMs: number
  /** The headers, until they are sent. */
  #head: string[] | undefined
  #held = ''
  #unwatch: (() => void) | undefined = undefined

  constructor(res: ServerResponse, headers: string[], stallMs: number, tenant: Tenant | undefined) {
    this.#res = res
    this.#head = headers
    this.#stallMs = stallMs
    this.tenant = tenant
    setImmediate(commit, this)
  }

  write(text: string): boolean {
    if (this.#res.writableEnded) return true
    this.silence = 0
    if (this.#head === undefined) this.blocked = !this.#res.write(text)
    else {
      this.#held += text
      if (this.#held.length > mostHeld) this.commit()
    }
    return !this.blocked
  }

  end(text = ''): void {
    if (this.#res.writableEnded) return
    if (this.#head !== undefined) {
      const body = this.#held + text
      this.#res.writeHead(200, [...this.#head, 'content-length', `${byteLength(body)}`])
      this.#head = undefined
      this.#held = ''
      this.#res.end(body)
      this.owner?.gone()
    } else this.#res.end(text)
    if (this.#res.writableLength > 0) this.watch(true)
  }

  cut(): void {
    this.#res.destroy()
    // Before the headers are out nothing listens to the response yet.
    if (this.#head !== undefined) this.commit()
  }

  watch(on: boolean): void {
    if (on === (this.#unwatch !== undefined)) return
    this.#unwatch?.()
    this.#unwatch = on ? cutWhenStalled(this.#res, this.#stallMs) : undefined
  }

  /** Sends the headers and what was held back. From here on each write goes out by itself. */
  commit(): void {
    const head = this.#head
    if (head === undefined) return
    this.#head = undefined
    if (this.#res.destroyed) {
      this.owner?.gone()
      return
    }
    this.#listen()
    this.#res.writeHead(200, head)
    if (this.#held === '') this.#res.flushHeaders()
    else this.blocked = !this.#res.write(this.#held)
    this.#held = ''
  }

  #listen(): void {
    this.#res.on('drain', () => {
      this.blocked = false
      this.owner?.drained()
    })
    this.#res.once('close', () => this.owner?.gone())
    // The socket's own failure is told by 'close'; without a listener it would end the process.
    this.#res.on('error', () => this.#res.destroy())
  }
}

function commit(outlet: NodeOutlet): void {
  outlet.commit()
}
