/** What servers say of their resources and lists, as events that clients subscribe to: one kind of each for every server. */
import type { Server } from '../../server/api.ts'
import type { EventHandle } from '../../server/events.ts'

export type ChangedList = 'tools' | 'resources' | 'prompts'

const payload = {
  type: 'object',
  properties: { upstream: { type: 'string' }, uri: { type: 'string' }, list: { type: 'string' } },
  required: ['upstream'],
} as const

type Handle = EventHandle<typeof payload>

export class UpstreamEvents {
  readonly #server: Server
  readonly #failed: (error: unknown) => void
  readonly #handles = new Map<string, Handle>()

  constructor(server: Server, failed: (error: unknown) => void) {
    this.#server = server
    this.#failed = failed
  }

  /** The server is there: its events can be subscribed to. */
  offer(upstream: string): void {
    this.#of(`${upstream}/resource_updated`, `A resource of the server ${upstream} is another one now`)
    this.#of(`${upstream}/list_changed`, `The tools, resources or prompts of the server ${upstream} are others now`)
  }

  updated(upstream: string, uri: string): void {
    this.#emit(`${upstream}/resource_updated`, { upstream, uri })
  }

  changed(upstream: string, list: ChangedList): void {
    this.#emit(`${upstream}/list_changed`, { upstream, list })
  }

  #emit(name: string, told: Readonly<Record<string, string>>): void {
    this.#handles.get(name)?.emit(told).catch(this.#failed)
  }

  #of(name: string, description: string): void {
    if (this.#handles.has(name) || !/^[A-Za-z0-9_.\-/]{1,128}$/.test(name)) return
    this.#handles.set(name, this.#server.event(name, { description, payload }))
  }
}
