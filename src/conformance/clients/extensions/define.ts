/** What scenarios of the extensions share: how a scripted server declares them, and what a client must know to be judged. */
import { NS } from '../../../engine/method.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Play } from '../play.ts'
import { type ClientScenario, ERAS, type Verdict } from '../scenario.ts'
import type { Seen } from '../seen.ts'
import { type Frame, metaIn, type Said } from '../stage/book.ts'

export function key(extension: string): string {
  return `${NS}/${extension}`
}

/** Capabilities of a server with tools and these extensions. */
export function offering(...extensions: readonly string[]): () => Frame {
  return () => ({ tools: {}, extensions: Object.fromEntries(extensions.map(name => [key(name), {}])) })
}

/** What a request says under the key of an extension. */
export function under(said: Said | undefined, extension: string): Frame {
  const own = metaIn(said)[key(extension)]
  return isRecord(own) ? own : {}
}

/** A problem as a tool's result carries it. */
export function problemResult(problem: Frame): Frame {
  return { content: [{ type: 'text', text: String(problem['message']) }], isError: true, _meta: { [key('problem')]: problem } }
}

interface Rules {
  readonly proves: readonly string[]
  /** The client must know it. */
  readonly knows: string
  readonly check: (seen: Seen, verdict: Verdict) => void
  readonly needs?: (seen: Seen) => string | undefined
  readonly carriers?: ClientScenario['carriers']
}

/** A scenario of an extension: at the newest revision of each era. */
export function extending(id: string, title: string, play: Play, { knows, needs, carriers, ...rules }: Rules): ClientScenario {
  return {
    role: 'client',
    id: `ext/client/${id}`,
    title,
    play,
    revisions: ERAS,
    ...(carriers === undefined ? {} : { carriers }),
    ...rules,
    needs: seen => (seen.extension(key(knows)) ? needs?.(seen) : `the client does not declare ${key(knows)}`),
  }
}
