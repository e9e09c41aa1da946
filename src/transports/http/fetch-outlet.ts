/**
 * An event stream as the body of a web Response. The body takes nothing ahead of its reader (a mark of 0), so that
 * each pull is a sign of life and what waits is known here.
 */
import type { Cancel, Clock } from '../../core/clock.ts'
import type { Outlet, OutletOwner, Tenant } from './outlet.ts'

const encoder = new TextEncoder()
/** Characters that may wait here before the reader is said to lag. */
const mostHeld = 64 * 1024

export class FetchOutlet implements Outlet {
  owner: OutletOwner | undefined = undefined
  readonly tenant: Tenant | undefined
  readonly body: ReadableStream<Uint8Array>
  silence = 0
  blocked = false
  readonly #stallMs: number
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined = undefined
  #held = ''
  #wanted = false
  #ending = false
  readonly #clock: Clock
  #stall: Cancel | undefined = undefined

  constructor(stallMs: number, tenant: Tenant | undefined, clock: Clock) {
    this.#clock = clock
    this.#stallMs = stallMs
    this.tenant = tenant
    const source: UnderlyingDefaultSource<Uint8Array> = {
      start: controller => {
        this.#controller = controller
      },
      pull: () => this.#pulled(),
      cancel: () => this.#close(),
    }
    this.body = new ReadableStream(source, { highWaterMark: 0 })
  }

  write(text: string): boolean {
    if (this.#ending) return true
    this.silence = 0
    if (this.#wanted) {
      this.#wanted = false
      this.#controller?.enqueue(encoder.encode(text))
    } else this.#held += text
    this.blocked = this.#held.length > mostHeld
    return !this.blocked
  }

  end(text = ''): void {
    if (this.#ending || this.#controller === undefined) return
    if (text !== '') this.write(text)
    this.#ending = true
    if (this.#held === '') this.#finish()
    else this.watch(true)
  }

  cut(): void {
    this.#controller?.error(new Error('The reader took nothing for too long'))
    this.#close()
  }

  /** The caller has gone away. */
  drop(): void {
    this.#controller?.error(new DOMException('The request was aborted', 'AbortError'))
    this.#close()
  }

  watch(on: boolean): void {
    if (on) this.#stall ??= this.#clock.setTimeout(() => this.cut(), this.#stallMs, true)
    else {
      this.#stall?.()
      this.#stall = undefined
    }
  }

  #pulled(): void {
    if (this.#stall !== undefined) {
      this.watch(false)
      this.watch(true)
    }
    if (this.#held === '') this.#wanted = true
    else {
      this.#controller?.enqueue(encoder.encode(this.#held))
      this.#held = ''
    }
    if (this.#ending) this.#finish()
    else if (this.blocked) {
      this.blocked = false
      this.owner?.drained()
    }
  }

  #finish(): void {
    this.#controller?.close()
    this.#close()
  }

  #close(): void {
    if (this.#controller === undefined) return
    this.#controller = undefined
    this.#held = ''
    this.watch(false)
    this.owner?.gone()
  }
}
