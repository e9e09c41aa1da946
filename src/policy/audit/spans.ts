/**
 * Notes as OpenTelemetry spans, where `@opentelemetry/api` is installed. A note is written when the thing is over, so its span is
 * made whole at once; those of one inference share a trace, whichever process made them.
 */
import { createHash } from 'node:crypto'
import type { Attributes } from '@opentelemetry/api'
import type { Noted } from './host-audit.ts'

type Api = typeof import('@opentelemetry/api')

/** Gives what makes a span of a note; undefined where the package is not installed. */
export async function openSpans(
  load: () => Promise<Api> = () => import('@opentelemetry/api'),
): Promise<((noted: Noted) => void) | undefined> {
  let api: Api
  try {
    api = await load()
  } catch {
    return undefined
  }
  const { ROOT_CONTEXT, SpanStatusCode, TraceFlags, trace } = api
  const tracer = trace.getTracer('vivarium')
  return noted => {
    const joined = noted.inferenceId ?? noted.cause ?? noted.eventId
    const context =
      joined === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, contextOf(joined, TraceFlags.SAMPLED))
    const startTime = noted.at - (noted.ms ?? 0)
    const span = tracer.startSpan(nameOf(noted), { startTime, attributes: attributesOf(noted) }, context)
    if (noted.outcome !== 'success') span.setStatus({ code: SpanStatusCode.ERROR, message: noted.why?.message ?? noted.outcome })
    span.end(noted.at)
  }
}

function nameOf({ kind, detail }: Noted): string {
  return kind === 'tool' && detail !== undefined ? `tools/call ${detail}` : kind
}

function attributesOf(noted: Noted): Attributes {
  const { server, featureSet, inferenceId, eventId, conversation, outcome, why } = noted
  return {
    'vivarium.server': server,
    'vivarium.outcome': outcome,
    ...(featureSet !== undefined && { 'vivarium.feature_set': featureSet }),
    ...(inferenceId !== undefined && { 'vivarium.inference_id': inferenceId }),
    ...(eventId !== undefined && { 'vivarium.event_id': eventId }),
    ...(conversation !== undefined && { 'gen_ai.conversation.id': conversation }),
    ...(why !== undefined && { 'vivarium.rule': why.rule, 'vivarium.fix': why.fix }),
    ...(outcome !== 'success' && { 'error.type': why?.code ?? outcome }),
  }
}

/** The same trace for the same inference, everywhere. */
function contextOf(id: string, traceFlags: number): { traceId: string; spanId: string; traceFlags: number } {
  const hex = createHash('sha256').update(id).digest('hex')
  return { traceId: hex.slice(0, 32), spanId: hex.slice(32, 48), traceFlags }
}
