/** `vivarium gateway status`: how the gateway of a file is, as it says itself on its own machine. */
import type { GatewayConfig } from '../../gateway/index.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { CliError } from '../exit.ts'
import type { Io } from '../io.ts'
import { printerOf } from '../print.ts'
import { brief, safe } from '../terminal/paint.ts'

const waitMs = 5_000

export async function showStatus(
  { frame }: GatewayConfig<unknown>,
  { port = frame.listen.port ?? 7420, format }: { readonly port?: number; readonly format: 'text' | 'json' },
  io: Io,
): Promise<number> {
  const { host = '127.0.0.1' } = frame.listen
  const url = `http://${['0.0.0.0', '::', ''].includes(host) ? '127.0.0.1' : host}:${port}/ready`
  const said = await read(url)
  const { line, json, paint } = printerOf(io)
  const ready = said['ready'] === true
  if (format === 'json') json(said)
  else {
    line(ready ? paint.good('It is ready') : paint.bad('It is not ready'))
    if (said['store'] === false) line(`  ${paint.bad('Its store cannot be reached')}`)
    if (said['looked'] === false) line('  It looks at its servers for the first time')
    const upstreams = Array.isArray(said['upstreams']) ? said['upstreams'].filter(isRecord) : []
    for (const { name, status, revision, tools, resources, prompts, why, fix } of upstreams) {
      const offers = `${revision}: ${tools} tools, ${resources} resources, ${prompts} prompts`
      line(`${paint.name(safe(String(name)))} ${safe(String(status))}  ${safe(status === 'up' ? offers : `${why}. ${fix}`)}`)
    }
    if (said['upstreams'] === undefined) line('  It tells more only on its own machine, or to who may call')
  }
  return ready ? 0 : 4
}

async function read(url: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const said: unknown = await (await fetch(url, { signal: AbortSignal.timeout(waitMs) })).json()
    if (isRecord(said) && typeof said['ready'] === 'boolean') return said
  } catch (cause) {
    const why = brief(cause instanceof Error ? String(cause.cause ?? cause.message) : String(cause), 200)
    throw new CliError(4, `No gateway answers at ${url}: ${why}`, 'Start it; where it listens elsewhere, give --port', { cause })
  }
  throw new CliError(4, `What answers at ${url} is no gateway`, 'Give its --port')
}
