/** A console before a real gateway with real servers in memory, and browsers that talk to it, for tests. */
import { expect, onTestFinished } from 'vitest'
import type { Approval } from '../../src/console/contract/approvals.ts'
import type { Role } from '../../src/console/contract/session.ts'
import { observeGateway } from '../../src/console/observer.ts'
import { type ConsoleOptions, type RunningConsole, serveConsole } from '../../src/console/serve.ts'
import type { GatewayOptions } from '../../src/gateway/gateway.ts'
import { clientOf, gatewayBefore, type Upstream } from '../gateway/world.ts'

type Headers = Readonly<Record<string, string>>

/** An answer of the API. */
export interface Answer {
  readonly status: number
  readonly headers: globalThis.Headers
  readonly body: Readonly<Record<string, unknown>>
}

/** The token of a link. */
export const tokenIn = (link: string): string => link.split('#k=')[1] ?? ''

/** A gateway with these options and upstreams, a client of it, and a console. */
export async function consoleWorld(
  { servers = {}, ...given }: Omit<GatewayOptions, 'servers'> & { readonly servers?: Readonly<Record<string, Upstream>> },
  options: Partial<ConsoleOptions> = {},
) {
  const observe = observeGateway({ log: 'silent', ...given })
  const gateway = await gatewayBefore(servers, observe.options)
  const running = await serveConsole({ gateway, observer: observe.observer, by: 'ann', port: 0, ...options })
  onTestFinished(() => running.close())
  return {
    gateway,
    console: running,
    observe,
    client: await clientOf(gateway),
    page: (who: { readonly by?: string; readonly roles?: readonly Role[] } = {}) => signedIn(running, running.newLink(who)),
  }
}

/** What a page of ours sends with a request that is no GET. */
export function pageHeaders({ port }: RunningConsole): Headers {
  return { origin: `http://127.0.0.1:${port}`, 'content-type': 'application/json', 'x-vivarium': '1' }
}

/** Signs in by a link. */
export async function signedIn(running: RunningConsole, link: string) {
  const base = `${running.url}api/1`
  const token = tokenIn(link)
  const opened = await fetch(`${base}/session`, {
    method: 'POST',
    headers: pageHeaders(running),
    body: JSON.stringify({ token }),
  })
  expect(opened.status).toBe(200)
  const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? ''
  const send = async (method: string, path: string, headers: Headers, body?: unknown): Promise<Answer> => {
    const sent = method === 'GET' ? {} : { body: JSON.stringify(body ?? {}) }
    const response = await fetch(base + path, { method, headers: { cookie, ...headers }, ...sent })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? {} : (JSON.parse(text) as Answer['body']) }
  }
  const get = (path: string, headers: Headers = {}): Promise<Answer> => send('GET', path, headers)
  return {
    cookie,
    get,
    post: (path: string, body?: unknown) => send('POST', path, pageHeaders(running), body),
    remove: (path: string) => send('DELETE', path, pageHeaders(running)),
    /** The oldest approval, once there is one. */
    waiting: async (): Promise<Approval> => {
      await expect.poll(async () => ((await get('/approvals')).body['items'] as unknown[]).length).toBeGreaterThan(0)
      return ((await get('/approvals')).body['items'] as Approval[])[0] as Approval
    },
  }
}
