/** JSON from an address that the author or the issuer they chose has named: bounded in time and size, no redirects. */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'

export const fetchLimits = { bytes: 256 * 1024, ms: 5_000 }

/** What the door needs of the issuer could not be had: nobody's token is at fault. */
export class IssuerError extends Error {
  override readonly name = 'IssuerError'
}

export interface JsonRequest {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** A JSON object, or an IssuerError. */
export async function fetchJson(url: string, request: JsonRequest = {}, limits = fetchLimits): Promise<Record<string, unknown>> {
  let text: string
  try {
    const response = await fetch(url, {
      ...request,
      headers: { accept: 'application/json', ...request.headers },
      redirect: 'error',
      signal: AbortSignal.timeout(limits.ms),
    })
    text = await readText(response, limits.bytes)
    if (!response.ok) throw new Error(`it answered with status ${response.status}`)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'the request failed'
    throw new IssuerError(`Cannot read ${clip(url)}: ${clip(why)}`, { cause })
  }
  const value = parsed(text)
  if (!isRecord(value)) throw new IssuerError(`What ${clip(url)} answered is no JSON object`)
  return value
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function readText(response: Response, most: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > most) throw new Error(`its answer is longer than ${most} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
