/** Request headers as flat lists: prepared once per connection, completed per message without an object in between. */

export type HeaderRecord = Readonly<Record<string, string>>

export class HeaderTemplate {
  readonly #flat: string[] = []
  /** Where the value of each name lies. */
  readonly #places = new Map<string, number>()

  /** `own` headers belong to the carrier: `given` ones may not replace them. */
  constructor(own: HeaderRecord, given: HeaderRecord = {}) {
    for (const [name, value] of Object.entries(own)) this.#put(name, value)
    for (const [name, value] of Object.entries(given)) {
      const lower = name.toLowerCase()
      if (reserved.has(lower))
        throw new TypeError(`The header ${lower} is set by the connection; leave it out of the option headers`)
      this.#put(lower, value)
    }
  }

  /** A new list, with the headers of one message added or put in place. */
  with(more: HeaderRecord | undefined): string[] {
    const flat = this.#flat.slice()
    if (more === undefined) return flat
    for (const name in more) {
      const value = more[name] as string
      const lower = name.toLowerCase()
      const place = this.#places.get(lower)
      if (place === undefined) flat.push(lower, value)
      else flat[place] = value
    }
    return flat
  }

  #put(name: string, value: string): void {
    this.#places.set(name, this.#flat.length + 1)
    this.#flat.push(name, value)
  }
}

const reserved = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'host',
  'last-event-id',
  'mcp-session-id',
  'transfer-encoding',
])
