/** The client's side of being asked: a form to fill in or a page to visit goes to the host's handler. */
import { isSecretName } from '../../../core/redact.ts'
import { answerOf, byHandler } from '../../../engine/asking.ts'
import { defineClientFeature, extend, type RequestRate } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Revision } from '../../../revisions/index.ts'
import { questionHandlers } from '../input-required/messages.ts'
import {
  type ElicitResult,
  earlierAnswers,
  elicit,
  elicitationComplete,
  elicitationErrors,
  hasElicitationModes,
  isElicitResult,
  pagesIn,
} from './messages.ts'

/** A question of a server to the user. */
export type Question =
  | {
      /** Whether the user fills in a form (`form`) or visits a page (`url`). */
      readonly mode: 'form'
      /** The text that the user reads. */
      readonly message: string
      /** The JSON Schema of the form: an object with flat properties. */
      readonly schema: Readonly<Record<string, unknown>>
      /** Fields that ask for a password, key or token. Forms must not do that: warn the user. Absent if there are none. */
      readonly secrets?: readonly string[]
    }
  | {
      /** Whether the user fills in a form (`form`) or visits a page (`url`). */
      readonly mode: 'url'
      /** The text that the user reads. */
      readonly message: string
      /** The address of the page: https, or http on this machine. Open it only after the user has agreed. */
      readonly url: string
      /** The host of the page. Show it with the address, which can be made to look like another's. */
      readonly host: string
      /** The id of the question, which `onElicitationComplete` repeats. Undefined if the revision has none. */
      readonly elicitationId: string | undefined
    }

/** Asks the user a question of the server, and returns the answer. */
export type OnElicit = (
  question: Question,
  context: {
    /** Aborted when the server cancels the question. */
    readonly signal: AbortSignal
  },
) => Awaitable<ElicitResult>

/** Called with a question that was refused before the user saw it, because its page is at an address that must not be opened. */
export type OnQuestionRefused = (question: {
  /** The text of the question. */
  readonly message: string
  /** The address that is not opened. */
  readonly url: string
}) => void

/** Options of `connect` for questions to the user. */
export interface ElicitationOptions {
  /** Asks the user the questions of the server. If set, the client declares `elicitation`; without it servers cannot ask. */
  readonly onElicit?: OnElicit
  /** Called with a question whose page is at an address that must not be opened. `onElicit` does not see it. */
  readonly onQuestionRefused?: OnQuestionRefused
  /** Whether servers may ask the user to visit a page, not only to fill in forms. Default true with `onElicit`. */
  readonly elicitUrl?: boolean
  /** Called when the server reports that a page has done its work, for pages that this connection was asked to visit. */
  readonly onElicitationComplete?: (elicitationId: string) => void
}

interface ElicitationSideOptions {
  readonly onElicit: OnElicit | undefined
  /** Whether pages may be asked for, beside forms. */
  readonly url: boolean
  /** Throws a refusal when the server asks too often. */
  readonly admit: () => void
  readonly onComplete: (elicitationId: string) => void
  /** Told of a question that nobody is shown. */
  readonly onRefused?: OnQuestionRefused | undefined
}

interface ElicitationLimits {
  readonly limits?: { readonly rates?: { readonly elicit?: RequestRate | false } }
}

/** Answers the server's questions to the user. */
export const elicitationClient = defineClientFeature<ElicitationOptions, unknown, ElicitationOptions & ElicitationLimits>({
  name: 'elicitation',
  options: { onElicit: 'function', onQuestionRefused: 'function', elicitUrl: 'boolean', onElicitationComplete: 'function' },
  setup(kit, { onElicit, onQuestionRefused, elicitUrl = true, onElicitationComplete, limits }) {
    const asked: OnElicit | undefined =
      onElicit &&
      ((question, context) => {
        for (const answered of kit.extensions(earlierAnswers)) {
          const earlier = answered(question)
          if (earlier !== undefined) return earlier
        }
        return onElicit(question, context)
      })
    const { side, answer, failed } = elicitationSide({
      onElicit: asked,
      url: elicitUrl,
      admit: kit.admission('elicitations', limits?.rates?.elicit ?? { perSecond: 0.5, burst: 10 }),
      onComplete: id => onElicitationComplete?.(id),
      onRefused: onQuestionRefused,
    })
    const extensions = [extend(questionHandlers, { method: elicit, answer })]
    return onElicitationComplete === undefined ? { side, extensions } : { side, extensions, failed }
  },
})

/** What answers such questions, and what declares it. */
export function elicitationSide(options: ElicitationSideOptions) {
  const { onElicit } = options
  const awaited = new AwaitedPages()
  const answer = async (params: Params, signal: AbortSignal): Promise<ElicitResult> => {
    if (onElicit === undefined) throw new McpError('method-not-found', 'This client does not support elicitation')
    options.admit()
    const question = questionOf(params, options.onRefused)
    if (question.mode === 'url' && !options.url)
      throw new McpError('invalid-params', 'This client declared only form elicitation, not url elicitation')
    if (question.mode === 'url') awaited.add(question.elicitationId)
    const given = await onElicit(question, { signal })
    const result = answerOf('onElicit', given, isElicitResult, "{ action: 'accept'|'decline'|'cancel' }")
    if (result.action !== 'accept') {
      if (question.mode === 'url') awaited.take(question.elicitationId)
      return { action: result.action }
    }
    return question.mode === 'form'
      ? { action: 'accept', content: withDefaults(question.schema, result.content ?? {}) }
      : { action: 'accept' }
  }
  const offered = (): boolean => onElicit !== undefined
  const complete = ({ params: { elicitationId: id } }: Exchange): void => {
    if (awaited.take(id)) options.onComplete(id as string)
  }
  const side: Side = {
    handlers: [
      [elicit, { offered, execute: byHandler('onElicit', answer) }],
      [elicitationComplete, complete],
    ],
    capabilities: revision => (onElicit === undefined ? {} : declared(revision, options.url)),
    errors: elicitationErrors,
  }
  return {
    side,
    /** Answers a question, wherever it came from. */
    answer,
    /** A call failed, maybe because pages have to be visited first: their end may be announced, too. */
    failed: (error: unknown): void => {
      for (const { elicitationId } of pagesIn(error) ?? []) awaited.add(elicitationId)
    },
  }
}

function declared(revision: Revision, url: boolean): Record<string, unknown> {
  if (!elicit.in.includes(revision.id)) return {}
  if (!hasElicitationModes(revision)) return { elicitation: {} }
  return { elicitation: url ? { form: {}, url: {} } : { form: {} } }
}

function questionOf(params: Params, refused: OnQuestionRefused | undefined): Question {
  const message = params['message'] as string
  if (params['mode'] === 'url') {
    const { url } = params
    if (typeof url !== 'string') throw new McpError('invalid-params', 'params.url must be a string')
    const host = pageHost(url)
    if (host === undefined) {
      refused?.({ message, url })
      throw new McpError(
        'invalid-params',
        'The page is not opened: params.url must be an https address, or an http address of this machine, without a user name',
      )
    }
    return { mode: 'url', message, url, host, elicitationId: params['elicitationId'] as string | undefined }
  }
  if (!isRecord(params['requestedSchema'])) throw new McpError('invalid-params', 'params.requestedSchema must be an object')
  const schema = params['requestedSchema']
  const secrets = secretFields(schema)
  return { mode: 'form', message, schema, ...(secrets.length > 0 && { secrets }) }
}

/** Fields that the user left alone keep the default that the form shows. */
function withDefaults(
  schema: Readonly<Record<string, unknown>>,
  content: NonNullable<ElicitResult['content']>,
): NonNullable<ElicitResult['content']> {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {}
  const missing = Object.entries(properties).flatMap(([name, field]) => {
    return !Object.hasOwn(content, name) && isRecord(field) && field['default'] !== undefined ? [[name, field['default']]] : []
  })
  // From entries: a field may have any name, `__proto__` too.
  return missing.length === 0 ? content : Object.fromEntries([...Object.entries(content), ...missing])
}

// What calls for caution in a question before a user sees it: where a page really leads, fields that ask for secrets, and which
// pages a server may say something about later.

/**
 * The host that a page belongs to, port included; undefined for what may not be opened: only https, or http on this machine, and no
 * user name, behind which the host could hide.
 */
function pageHost(address: string): string | undefined {
  const url = URL.parse(address)
  if (url === null || url.username !== '' || url.password !== '') return undefined
  const { protocol, host, hostname } = url
  const local = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
  return protocol === 'https:' || (protocol === 'http:' && local) ? host : undefined
}

/** Fields of a form that ask for a password, key or token, by their name, title or format. Such things belong on a page. */
function secretFields(schema: Params): readonly string[] {
  const fields = isRecord(schema['properties']) ? schema['properties'] : {}
  return Object.entries(fields).flatMap(([name, field]) => {
    if (!isRecord(field) || field['type'] !== 'string') return []
    const title = typeof field['title'] === 'string' ? field['title'].trim() : ''
    return field['format'] === 'password' || isSecretName(name) || isSecretName(title) ? [name] : []
  })
}

/** The most pages whose end is waited for; then the oldest is forgotten. */
const mostAwaited = 1_000

/** Pages of one connection that somebody was sent to: the server may say once of each that it has done its work. */
class AwaitedPages {
  readonly #ids = new Set<string>()

  add(id: unknown): void {
    if (typeof id !== 'string') return
    this.#ids.add(id)
    const [oldest] = this.#ids
    if (this.#ids.size > mostAwaited && oldest !== undefined) this.#ids.delete(oldest)
  }

  /** False where nobody was sent there, or it was said before. */
  take(id: unknown): boolean {
    return this.#ids.delete(id as string)
  }
}
