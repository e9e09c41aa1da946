/** The way to whichever life is on: clients that stay while servers come and go, as clients over HTTP do. */
import { type Client, connect, type RevisionId } from 'vivarium/client'
import { type HttpPeer, httpPeer } from '../spec/http.ts'
import type { Life } from './process.ts'

/** Who asks for most things. */
export const caller = 'driver'
export const wires: readonly RevisionId[] = ['2025-11-25', '2026-07-28']

/** Nothing is decided yet: to be tried again, in this life or in a later one. */
export class Later extends Error {}

export class Line {
  readonly #clients = new Map<RevisionId, Client>()
  #life: Life | undefined = undefined
  #url = ''

  /** A life is on. */
  begin(life: Life, url: string): void {
    this.#life = life
    this.#url = url
  }

  /** Where it is. */
  get url(): string {
    return this.#url
  }

  get live(): boolean {
    return this.#life?.dead === false
  }

  /** The one of that wire; connected when first needed. */
  async client(revision: RevisionId): Promise<Client> {
    const known = this.#clients.get(revision)
    if (known !== undefined) return known
    const made = await connect('http://127.0.0.1:1/mcp', {
      revisions: [revision],
      retry: false,
      timeout: '20s',
      headers: { authorization: `Bearer ${caller}` },
      fetch: (input, init) => this.#fetch(input, init),
    })
    const first = this.#clients.get(revision)
    if (first === undefined) this.#clients.set(revision, made)
    else await made.close()
    return first ?? made
  }

  /** One who echoes no state: what a server keeps for it is found by its name alone. */
  plain(name: string): Promise<HttpPeer> {
    const capabilities = { extensions: { 'dev.vivarium/problem': {}, 'dev.vivarium/idempotency': {} } }
    return httpPeer(this.#url, '2026-07-28', capabilities, { authorization: `Bearer ${name}` })
  }

  /** Whether what was thrown comes of the death of the life: it may be seen a little before that is. */
  async isDeath(): Promise<boolean> {
    const life = this.#life
    if (life === undefined || life.dead) return true
    return Promise.race([life.over.then(() => true), new Promise<boolean>(done => setTimeout(done, 1000, false).unref())])
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients.values()].map(client => client.close().catch(() => {})))
  }

  #fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    if (!this.live) return Promise.reject(new TypeError('Nobody is there'))
    const { pathname, search } = new URL(input instanceof Request ? input.url : input)
    return fetch(new URL(pathname + search, this.#url), init)
  }
}
