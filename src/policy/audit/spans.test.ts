import * as api from '@opentelemetry/api'
import { expect, onTestFinished, test } from 'vitest'
import type { Noted } from './host-audit.ts'
import { openSpans } from './spans.ts'

/** What a tracer that is registered with the package was told. */
function registered() {
  const spans: Record<string, unknown>[] = []
  const tracer = {
    startSpan: (name: string, options: object, context: api.Context) => {
      const span: Record<string, unknown> = { name, ...options, trace: api.trace.getSpanContext(context)?.traceId }
      spans.push(span)
      return {
        setStatus: (status: unknown) => void Object.assign(span, { status }),
        end: (endTime: unknown) => void Object.assign(span, { endTime }),
      }
    },
  }
  api.trace.setGlobalTracerProvider({ getTracer: () => tracer } as unknown as api.TracerProvider)
  onTestFinished(() => void api.trace.disable())
  return spans
}

const noted: Noted = {
  at: 5_000,
  server: 'files',
  featureSet: 'files.edit',
  inferenceId: 'i1',
  kind: 'tool',
  detail: 'write',
  ms: 20,
  outcome: 'success',
}

test('a note is a span from when it began to when it was over, with its server and feature set', async () => {
  const spans = registered()
  const span = await openSpans()
  span?.(noted)
  expect(spans).toMatchObject([
    {
      name: 'tools/call write',
      startTime: 4_980,
      endTime: 5_000,
      attributes: { 'vivarium.server': 'files', 'vivarium.feature_set': 'files.edit', 'vivarium.inference_id': 'i1' },
    },
  ])
})

test('a refusal is an error with its code and rule, and spans of one inference share a trace', async () => {
  const spans = registered()
  const span = await openSpans()
  span?.(noted)
  const why = { code: 'DENIED', rule: 'policy.files', message: 'No', fix: 'Allow it' }
  span?.({ ...noted, kind: 'scope', outcome: 'refused', why })
  span?.({ ...noted, inferenceId: 'i2' })
  expect(spans[1]).toMatchObject({
    status: { code: api.SpanStatusCode.ERROR, message: 'No' },
    attributes: { 'error.type': 'DENIED', 'vivarium.rule': 'policy.files' },
  })
  expect(spans[1]?.['trace']).toBe(spans[0]?.['trace'])
  expect(spans[2]?.['trace']).not.toBe(spans[0]?.['trace'])
})

test('without the package there are no spans, and no error', async () => {
  expect(await openSpans(() => Promise.reject(new Error('Cannot find package')))).toBeUndefined()
})
