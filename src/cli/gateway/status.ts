/** `vivarium gateway status`: how the gateway of a file is, as it says itself to whoever can read its store. */
import type { GatewayConfig } from '../../gateway/index.ts'
import { operatorHeader, readOperatorKey } from '../../gateway/ops/health.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { printerOf } from '../print.ts'
import { brief, say } from '../terminal/text.ts'
import { storeIn } from './config.ts'

const waitMs = 5_000

export async function showStatus(
  config: GatewayConfig<unknown>,
  { port = config.frame.listen.port ?? 7420, format }: { readonly port?: number; readonly format: 'text' | 'json' },
  io: Io,
): Promise<number> {
  const { host = '127.0.0.1' } = config.frame.listen
  const url = `http://${['0.0.0.0', '::', ''].includes(host) ? '127.0.0.1' : host}:${port}/ready`
  const said = await read(url, await keyOf(config))
  const { line, json, paint } = printerOf(io)
  const ready = said['ready'] === true
  if (format === 'json') json(said)
  else {
    line(ready ? paint.good('It is ready') : paint.bad('It is not ready'))
    if (said['store'] === false) line(say`  ${paint.bad('Its store cannot be reached')}`)
    if (said['looked'] === false) line('  It looks at its servers for the first time')
    const upstreams = Array.isArray(said['upstreams']) ? said['upstreams'].filter(isRecord) : []
    for (const upstream of upstreams) line(say`${paint.name(String(upstream['name']))} ${upstreamText(upstream)}`)
    if (said['upstreams'] === undefined)
      line('  It tells more only to who can read its store: add store: sqlite:PATH to its file')
  }
  return ready ? 0 : 4
}

/** Only what was said: one that is still being connected to has neither a revision nor a reason. */
function upstreamText({ status, revision, tools, resources, prompts, why, fix }: Readonly<Record<string, unknown>>): string {
  const counts = Object.entries({ tools, resources, prompts }).flatMap(([what, count]) =>
    typeof count === 'number' ? `${count} ${what}` : [],
  )
  const offers = [revision, counts.join(', ')].filter(Boolean).join(': ')
  const down = [why, fix].filter(Boolean).join('. ')
  return [String(status), status === 'up' ? offers : down].filter(Boolean).join('  ')
}

/** Undefined where the store holds none that could be read. */
async function keyOf(config: GatewayConfig<unknown>): Promise<string | undefined> {
  const store = await storeIn(config).catch(() => undefined)
  try {
    return store && (await readOperatorKey(store))
  } catch {
    return undefined
  } finally {
    await store?.close()
  }
}

async function read(url: string, key: string | undefined): Promise<Readonly<Record<string, unknown>>> {
  const headers: Record<string, string> = key === undefined ? {} : { [operatorHeader]: key }
  try {
    const said: unknown = await (await fetch(url, { headers, signal: AbortSignal.timeout(waitMs) })).json()
    if (isRecord(said) && typeof said['ready'] === 'boolean') return said
  } catch (cause) {
    const why = brief(cause instanceof Error ? String(cause.cause ?? cause.message) : String(cause), 200)
    throw new CliError(4, `No gateway answers at ${url}: ${why}`, 'Start it; where it listens elsewhere, give --port', { cause })
  }
  throw new CliError(4, `What answers at ${url} is no gateway`, 'Give its --port')
}
