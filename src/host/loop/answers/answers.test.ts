import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openWorld, type World, type WorldOptions } from '../../../../test/hosting/loop-world.ts'
import { silent } from '../../../../test/hosting/silent-live.ts'
import type { Why } from '../../../core/suggestion.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Asked } from '../../../policy/rules/rule.ts'
import { createServer, type Server } from '../../../server/index.ts'
import { type ModelRequest, requestTokens } from '../../models/model.ts'
import { scripted } from '../../models/scripted.ts'
import type { LoopParts } from '../ports.ts'
import type { SampleReview } from './sampling.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

async function world(options: WorldOptions): Promise<World> {
  const opened = await openWorld(options)
  worlds.push(opened)
  return opened
}

const denied: Why = { code: 'DENIED', rule: 'rule-7', message: 'Not for this server', fix: 'Allow it' }

function deciding(kind: Asked['kind'], what: 'deny' | 'ask', yes = false): LoopParts['policy'] {
  return {
    decide: async asked => {
      if (asked.kind !== kind) return { do: 'allow', rule: 'rest' }
      return what === 'deny' ? { do: 'deny', why: denied } : { do: 'ask', question: 'Really?', digest: 'd', rule: 'rule-7' }
    },
    approve: async () => ({ yes }),
  }
}

/** A server whose tools ask what servers ask. */
function asking(): Server {
  const server = createServer({ name: 'asking', version: '1.0.0', secret: 'a-secret-of-thirty-two-characters!', log: 'silent' })
  server.tool('think', { input: z.object({ about: z.string(), hint: z.string().optional() }) }, async ({ about, hint }, ctx) => {
    const { content, model } = await ctx.sample({
      messages: [{ role: 'user', content: { type: 'text', text: about } }],
      maxTokens: 50,
      ...(hint !== undefined && { modelPreferences: { hints: [{ name: hint }] } }),
    })
    return `${model}: ${JSON.stringify(content)}`
  })
  server.tool('ask', {}, async (_, ctx) =>
    JSON.stringify(
      await ctx.elicit({ message: 'Your name?', schema: { type: 'object', properties: { name: { type: 'string' } } } }),
    ),
  )
  server.tool('page', { input: z.object({ url: z.string() }) }, async ({ url }, ctx) =>
    JSON.stringify(await ctx.elicit({ message: 'Sign in', url })),
  )
  server.tool('where', {}, async (_, ctx) => JSON.stringify(await ctx.roots()))
  return server
}

async function call(opened: World, tool: string, args: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const client = opened.servers[0]?.client
  // Where questions travel inside results, a refusal ends the call on this side already.
  const outcome = await client?.callTool(tool, args).catch((error: unknown) => ({ text: String(error) }))
  return outcome?.text ?? ''
}

describe('sampling', () => {
  test('is answered by the model of the host', async () => {
    const model = scripted(['Forty-two.'])
    const opened = await world({ model, servers: { asking: asking() } })
    expect(await call(opened, 'think', { about: 'life' })).toBe('scripted: {"type":"text","text":"Forty-two."}')
    expect(model.requests[0]).toMatchObject({
      messages: [{ role: 'user', content: [{ text: '<server-request server="asking">\nlife\n</server-request>' }] }],
      maxTokens: 50,
      tools: [],
    })
    expect(opened.notes.find(({ kind }) => kind === 'sample')).toMatchObject({ server: 'asking', outcome: 'success' })
  })

  test('hints choose among several models', async () => {
    const models = [
      scripted('big', { info: { id: 'claude-opus' } }),
      scripted('small', { info: { id: 'claude-haiku' } }),
    ] as const
    const opened = await world({ model: models, servers: { asking: asking() } })
    expect(await call(opened, 'think', { about: 'x', hint: 'haiku' })).toMatch(/^claude-haiku: /)
    expect(await call(opened, 'think', { about: 'x', hint: 'gpt' })).toMatch(/^claude-opus: /)
  })

  test('that the policy denies is refused with the rule, and no model is asked', async () => {
    const model = scripted('x')
    const opened = await world({ model, servers: { asking: asking() }, policy: deciding('sample', 'deny') })
    expect(await call(opened, 'think', { about: 'life' })).toContain('Not for this server')
    expect(model.requests).toHaveLength(0)
    expect(opened.notes.find(({ kind }) => kind === 'sample')).toMatchObject({ outcome: 'refused', why: denied })
  })

  test('under review the user may change the question and the answer', async () => {
    const model = scripted(['Raw answer.'])
    const seen: SampleReview['stage'][] = []
    const opened = await world({
      model,
      servers: { asking: asking() },
      policy: deciding('sample', 'ask'),
      onSampleReview: review => {
        seen.push(review.stage)
        if (review.stage === 'answer')
          return { yes: true, result: { ...review.result, content: { type: 'text', text: 'Edited answer.' } } }
        return {
          yes: true,
          params: { ...review.params, messages: [{ role: 'user', content: { type: 'text', text: 'Edited question' } }] },
        }
      },
    })
    expect(await call(opened, 'think', { about: 'secret' })).toContain('Edited answer.')
    expect(seen).toEqual(['prompt', 'answer'])
    expect(JSON.stringify(model.requests)).toContain('Edited question')
    expect(JSON.stringify(model.requests)).not.toContain('secret')
  })

  test('that the user declines reaches no model, whoever shows it to them', async () => {
    for (const onSampleReview of [() => ({ yes: false }), undefined]) {
      const model = scripted('x')
      const opened = await world({
        model,
        servers: { asking: asking() },
        policy: deciding('sample', 'ask'),
        ...(onSampleReview && { onSampleReview }),
      })
      expect(await call(opened, 'think', { about: 'x' })).toContain('declined sampling')
      expect(model.requests).toHaveLength(0)
    }
  })

  test('is paid by the budget of its server, and refused when that is spent', async () => {
    const asked: unknown[] = []
    const settled: unknown[] = []
    const budgets: LoopParts['budgets'] = {
      reserve: async wish => {
        asked.push(wish)
        if (asked.length > 1) return { code: 'BUDGET_SPENT', rule: 'budget.asking', message: 'The budget is spent', fix: 'Wait' }
        return { settle: actual => void settled.push(actual) }
      },
    }
    const model = scripted(['One.', 'Two.'])
    const opened = await world({ model, servers: { asking: asking() }, budgets })
    await call(opened, 'think', { about: 'x' })
    expect(asked).toMatchObject([{ server: 'asking', featureSet: 'sampling', requests: 1 }])
    const tokens = requestTokens(model.requests[0] as ModelRequest) + 1
    expect(settled).toEqual([{ tokens, requests: 1 }])
    expect(await call(opened, 'think', { about: 'x' })).toContain('The budget is spent')
    expect(model.requests).toHaveLength(1)
  })
})

describe('elicitation', () => {
  test('goes to the user with the name of the server that asks, and comes back as the user says', async () => {
    const questions: unknown[] = []
    const opened = await world({
      model: scripted('x'),
      servers: { asking: asking() },
      onElicit: question => {
        questions.push(question)
        return { action: 'accept', content: { name: 'Ada' } }
      },
    })
    expect(JSON.parse(await call(opened, 'ask'))).toMatchObject({ action: 'accept', content: { name: 'Ada' } })
    expect(questions).toMatchObject([{ mode: 'form', server: 'asking', message: 'Your name?' }])
  })

  test('is never answered without a user', async () => {
    const opened = await world({ model: scripted('Ada'), servers: { asking: asking() } })
    const outcome = await opened.servers[0]?.client?.callTool('ask').catch((error: unknown) => error)
    expect(outcome instanceof McpError || (outcome as { isError: boolean }).isError).toBe(true)
  })

  test('for a page shows where it leads, and an address that hides that is declined unseen', async () => {
    const questions: { domain?: string }[] = []
    const opened = await world({
      model: scripted('x'),
      servers: { asking: asking() },
      onElicit: question => {
        questions.push(question)
        return { action: 'accept' }
      },
    })
    expect(await call(opened, 'page', { url: 'https://login.example.com/x?y' })).toContain('accept')
    expect(questions).toMatchObject([{ domain: 'login.example.com' }])
    for (const url of ['https://bank.example@evil.example/', 'http://evil.example/', 'javascript:alert(1)', 'file:///etc/passwd'])
      expect(await call(opened, 'page', { url })).not.toContain('accept')
    expect(questions).toHaveLength(1)
    const refused = opened.notes.filter(({ kind, outcome }) => kind === 'elicit' && outcome === 'refused')
    expect(refused.map(({ why }) => why?.code)).toEqual(Array.from({ length: 4 }, () => 'UNSAFE_ADDRESS'))
  })

  test('that the policy denies is declined', async () => {
    const opened = await world({
      model: scripted('x'),
      servers: { asking: asking() },
      policy: deciding('elicit', 'deny'),
      onElicit: () => ({ action: 'accept' }),
    })
    expect(JSON.parse(await call(opened, 'ask'))).toMatchObject({ action: 'decline' })
  })
})

describe('roots', () => {
  const roots = [{ uri: 'file:///home/ada/project', name: 'project' }]

  test('are told to a server that may know, and none to one that may not', async () => {
    const open = await world({ model: scripted('x'), servers: { asking: asking() }, roots })
    expect(await call(open, 'where')).toContain('file:///home/ada/project')
    for (const policy of [deciding('roots', 'deny'), deciding('roots', 'ask', false)]) {
      const closed = await world({ model: scripted('x'), servers: { asking: asking() }, roots, policy })
      expect(JSON.parse(await call(closed, 'where'))).toEqual([])
    }
    const agreed = await world({
      model: scripted('x'),
      servers: { asking: asking() },
      roots,
      policy: deciding('roots', 'ask', true),
    })
    expect(await call(agreed, 'where')).toContain('file:///home/ada/project')
  })

  test('that change are the new ones from then on', async () => {
    const opened = await world({ model: scripted('x'), servers: { asking: asking() }, roots })
    opened.loop.answers.setRoots([{ uri: 'file:///tmp/other' }])
    expect(await call(opened, 'where')).toContain('file:///tmp/other')
  })
})

describe('inference', () => {
  const request = {
    featureSet: 'memory.consolidation',
    stream: true,
    messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Sum up' }] }],
    preferences: { maxTokens: 5 },
  }
  const never = new AbortController().signal

  test('L11.3-1 L11.4-1 is answered by the routed model, in chunks that make up the content, with its real usage', async () => {
    const models = [
      scripted('no', { info: { id: 'big' } }),
      scripted('A short summary of it all.', { info: { id: 'small' } }),
    ] as const
    const { loop, notes } = await world({ model: models, routes: { 'memory/memory.consolidation': 'small' } })
    const chunks: string[] = []
    const result = await loop.answers
      .for('memory')
      .live.onInfer(request, { signal: never, chunk: delta => void chunks.push(delta) })
    expect(result).toEqual({
      content: 'A short summary of it all.',
      model: 'small',
      finishReason: 'end_turn',
      usage: { inputTokens: requestTokens(models[1].requests[0] as ModelRequest), outputTokens: 7 },
    })
    expect(chunks.join('')).toBe(result.content)
    expect(chunks.length).toBeGreaterThan(1)
    expect(notes).toMatchObject([{ server: 'memory', featureSet: 'memory.consolidation', kind: 'infer', outcome: 'success' }])
  })

  test('L11.4-2 without stream there are no chunks', async () => {
    const { loop } = await world({ model: scripted('Words.') })
    const chunks: string[] = []
    await loop.answers
      .for('memory')
      .live.onInfer({ ...request, stream: false }, { signal: never, chunk: delta => void chunks.push(delta) })
    expect(chunks).toEqual([])
  })

  test('L11.3-2 needs no human: policy and budget decide, and a refusal says which rule', async () => {
    const { loop } = await world({ model: scripted('x'), policy: deciding('infer', 'deny') })
    const refused = loop.answers.for('memory').live.onInfer(request, { signal: never, chunk: () => {} })
    await expect(refused).rejects.toMatchObject({ kind: 'invalid-request', data: denied })
  })

  test('stops when the server cancels it', async () => {
    const { loop } = await world({ model: scripted({ text: 'late', latencyMs: 60_000 }) })
    const stop = new AbortController()
    const waiting = loop.answers.for('memory').live.onInfer(request, { signal: stop.signal, chunk: () => {} })
    stop.abort(new Error('not needed'))
    await expect(waiting).rejects.toThrow('not needed')
  })

  test('L10.7-2 runs no hooks', async () => {
    let asked = 0
    const { loop } = await world({
      model: scripted('x'),
      lives: {
        watch: {
          dialect: { version: '0.2', label: '0.2', carrier: 'session' },
          featureSets: new Map(),
          hooks: { before: true, after: 'blocking', lifecycle: false },
          update: async () => {},
          beforeInference: async () => void asked++ as undefined,
          afterInference: async () => void asked++ as undefined,
          rollback: async (_, checkpoint) => ({ success: true, checkpoint }),
          publish: async () => {},
          ...silent,
        },
      },
    })
    await loop.answers.for('watch').live.onInfer(request, { signal: never, chunk: () => {} })
    expect(asked).toBe(0)
  })

  test('L12-1 model/info tells of the model that answers', async () => {
    const { loop } = await world({
      model: scripted('x', { info: { id: 'm1', vendor: 'v', contextWindow: 1_000, capabilities: ['tools', 'vision'] } }),
    })
    expect(loop.answers.for('any').live.modelInfo()).toEqual({
      id: 'm1',
      vendor: 'v',
      contextWindow: 1_000,
      capabilities: ['tools', 'vision'],
    })
  })
})
