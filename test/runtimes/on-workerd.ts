/**
 * A Worker with two ways in. `/mcp` is answered by the Worker itself: no two requests may share anything there. `/object/mcp` is
 * answered by a Durable Object, in which all requests meet.
 */
import { smallServer } from './server.ts'

interface Sessions {
  idFromName(name: string): unknown
  get(id: unknown): { fetch(request: Request): Promise<Response> }
}

const handle = smallServer()

export default {
  fetch(request: Request, { SESSIONS }: { readonly SESSIONS: Sessions }): Promise<Response> {
    if (!new URL(request.url).pathname.startsWith('/object/')) return handle(request)
    return SESSIONS.get(SESSIONS.idFromName('all')).fetch(request)
  },
}

export class SessionObject {
  readonly #handle = smallServer()

  fetch(request: Request): Promise<Response> {
    return this.#handle(request)
  }
}
