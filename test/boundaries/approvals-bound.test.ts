import { expect, onTestFinished, test } from 'vitest'
import type { ApprovalAnswer, ApprovalQuestion } from '../../src/policy/approvals/question.ts'
import { createPolicy, type PolicyOptions } from '../../src/policy/policy.ts'
import type { Asked } from '../../src/policy/rules/rule.ts'
import { elevate } from '../../src/policy/scopes/elevate.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { approver, calling, near, opened, said, server, type Wanted } from './turns-world.ts'

/** A server with a scoped set, of which both tools act on a path. */
function files() {
  const ran: string[] = []
  const made = server('files')
  const set = made.featureSet('files.all', { description: 'Reads and writes files', scoped: true, uses: ['tools'] })
  const [, write] = ['read_file', 'write_file'].map(name =>
    set.tool(name, { description: name }, async args => void ran.push(`${name} ${JSON.stringify(args)}`)),
  )
  const change = (description: string): void => write?.update({ description })
  return { made, ran, change }
}

const extract = { 'files/*': 'path' }
const hosts = { path: '/etc/hosts' }
const reading: Wanted = { name: 'read_file', arguments: hosts }
const writing: Wanted = { name: 'write_file', arguments: { ...hosts, text: '127.0.0.1 bank.example' } }

async function filesHost(wanted: Wanted[], answer: (question: ApprovalQuestion) => ApprovalAnswer | Promise<ApprovalAnswer>) {
  const { made, ran, change } = files()
  const { questions, onApproval } = approver(answer)
  const host = await opened({ servers: { files: near(made) }, model: calling(wanted), extract, onApproval })
  await expect.poll(() => host.server('files')?.live?.featureSets.get('files.all')?.enabled).toBe(true)
  return { host, ran, questions, change }
}

test('a yes to reading a file does not let the same server write it', async () => {
  const { host, ran, questions } = await filesHost([reading, writing], ({ asked }) => asked.tool === 'read_file')
  expect([await said(host), await said(host)]).toEqual([['done'], ['refused']])
  expect(questions.map(({ asked }) => asked.tool)).toEqual(['read_file', 'write_file'])
  expect(ran).toHaveLength(1)
})

test('a yes counts for exactly these arguments, those beside the scope too, and the question shows them all', async () => {
  const other = { name: 'write_file', arguments: { ...hosts, text: 'other' } }
  const { host, questions } = await filesHost([writing, writing, other], () => true)
  expect([await said(host), await said(host), await said(host)]).toEqual([['done'], ['done'], ['done']])
  expect(questions.map(({ asked }) => asked.payload)).toEqual([writing.arguments, other.arguments])
  expect(questions[0]?.text).toContain('127.0.0.1 bank.example')
})

test('a yes that was given in one conversation is asked for again in another', async () => {
  const { host, questions } = await filesHost([writing, writing], () => true)
  await said(host, 'Go', 'c1')
  await said(host, 'Go', 'c2')
  expect(questions).toHaveLength(2)
})

test('a tool whose definition changed after the yes is asked about again', async () => {
  const { host, questions, change } = await filesHost([writing, writing], () => true)
  await said(host)
  change('Writes a file, and sends it away')
  await expect
    .poll(async () => (await host.server('files')?.tools())?.map(({ tool }) => tool.description))
    .toContain('Writes a file, and sends it away')
  await said(host)
  expect(questions.filter(({ asked }) => asked.tool === 'write_file')).toHaveLength(2)
})

test('a tool whose definition changes while the question is open is not called', async () => {
  const { made, ran, change } = files()
  const { onApproval, questions } = approver(async () => {
    change('Another tool by now')
    await expect
      .poll(async () => (await host.server('files')?.tools())?.map(({ tool }) => tool.description))
      .toContain('Another tool by now')
    return true
  })
  const host = await opened({ servers: { files: near(made) }, model: calling([writing]), extract, onApproval })
  await expect.poll(() => host.server('files')?.live?.featureSets.get('files.all')?.enabled).toBe(true)
  const turn = await host.conversation('c1').send('Go')
  await turn.done
  expect(turn.calls[0]?.outcome).toMatchObject({ status: 'refused', why: { code: 'TOOL_CHANGED' } })
  expect([questions.length, ran]).toEqual([1, []])
})

test('a wider yes is one that the question offered in words: for the tool, or for the scope', async () => {
  const wanted = [reading, { name: 'read_file', arguments: { path: '/etc/group' } }, writing]
  const tool = await filesHost([...wanted], () => ({ yes: true, covers: 'tool' }))
  expect([await said(tool.host), await said(tool.host), await said(tool.host)]).toEqual([['done'], ['done'], ['done']])
  expect(tool.questions.map(({ asked }) => asked.tool)).toEqual(['read_file', 'write_file'])
  expect(tool.questions[0]?.wider).toEqual([
    { covers: 'tool', text: 'every call of the tool read_file of files, with any arguments, in all turns that you start' },
    {
      covers: 'scope',
      text: 'everything that files.all of files does on /etc/hosts ({"path":"/etc/hosts"}), with any of its tools or on its own initiative',
    },
  ])
  const scope = await filesHost([...wanted], () => ({ yes: true, covers: 'scope' }))
  await said(scope.host)
  await said(scope.host)
  await said(scope.host)
  expect(scope.questions.map(({ asked }) => asked.payload)).toEqual([hosts, { path: '/etc/group' }])
})

test('a yes to a server does not count for one at another address that has its name after a restart', async () => {
  const store = memoryStore()
  const asked: number[] = []
  for (const wider of [true, false]) {
    const { made, ran } = files()
    const { url } = await made.listen()
    const { questions, onApproval } = approver(() => (wider ? { yes: true, covers: 'tool' } : false))
    const host = await opened({ servers: { files: url }, store, model: calling([writing]), extract, onApproval })
    await expect.poll(() => host.server('files')?.live?.featureSets.get('files.all')?.enabled).toBe(true)
    await said(host)
    asked.push(questions.length, ran.length)
    await host.close()
  }
  expect(asked).toEqual([1, 1, 1, 0])
})

/** The policy alone, with a scoped set and everything that a host would tell it. */
async function policyWith(options: PolicyOptions = {}) {
  const questions: ApprovalQuestion[] = []
  const policy = await createPolicy({
    extract,
    ...options,
    onApproval: (question, context) => {
      questions.push(question)
      return options.onApproval?.(question, context) ?? true
    },
  })
  onTestFinished(() => policy.close())
  policy.select('files', new Map([['files.all', { description: 'd', uses: ['tools'], scoped: true }]]))
  const call = (more: Partial<Asked> = {}): Asked => ({
    ...{ kind: 'tool', server: 'files', featureSet: 'files.all', tool: 'read_file', payload: hosts, definition: 'd1' },
    ...{ begunBy: { kind: 'user' }, conversation: 'c1' },
    ...more,
  })
  const ask = async (asked: Asked): Promise<boolean> => {
    const verdict = await policy.decide(asked)
    return verdict.do === 'ask' ? (await policy.approve(asked, verdict)).yes : verdict.do === 'allow'
  }
  return { policy, questions, call, ask }
}

test('a yes to an elevation lets no tool run, and a yes to a tool elevates nothing', async () => {
  const { policy, questions, call, ask } = await policyWith()
  const scope = { label: '/etc/hosts', payload: hosts }
  await elevate(policy, 'files', { featureSet: 'files.all', scope })
  await ask(call())
  expect(questions.map(({ asked }) => asked.kind)).toEqual(['scope', 'tool'])
  await elevate(policy, 'files', { featureSet: 'files.all', scope: { ...scope, payload: { ...hosts, mode: 'write' } } })
  expect(questions).toHaveLength(3)
})

test('a yes to an inference or to sampling with the same payload lets no tool run', async () => {
  const { call, ask, questions } = await policyWith({ rules: { otherwise: { infer: 'ask' } } })
  await ask({ kind: 'infer', server: 'files', featureSet: 'files.all', payload: hosts })
  await ask({ kind: 'sample', server: 'files', payload: hosts })
  await ask(call())
  expect(questions.map(({ asked }) => asked.kind)).toEqual(['infer', 'sample', 'tool'])
})

test('a yes does not count for another server that gets the name later', async () => {
  const store = memoryStore()
  const one = await policyWith({ store, identityOf: () => 'https://one.example/mcp' })
  await one.ask(one.call())
  const again = await policyWith({ store, identityOf: () => 'https://one.example/mcp' })
  expect([await again.ask(again.call()), again.questions.length]).toEqual([true, 0])
  const other = await policyWith({ store, identityOf: () => 'https://other.example/mcp', onApproval: () => false })
  expect([await other.ask(other.call()), other.questions.length]).toEqual([false, 1])
})

test('a yes in a turn of the user does not count where an event began the turn, nor that of one event for the next', async () => {
  const { call, ask, questions } = await policyWith()
  const event = (eventId: string) => ({ kind: 'event', server: 'files', featureSet: 'files.all', eventId }) as const
  await ask(call())
  await ask(call({ begunBy: event('e1') }))
  await ask(call({ begunBy: event('e1') }))
  await ask(call({ begunBy: event('e2') }))
  expect(questions.map(({ asked }) => asked.begunBy)).toEqual([{ kind: 'user' }, event('e1'), event('e2')])
})

test('a yes to an event from one origin does not count for the same words from another', async () => {
  const { ask, questions } = await policyWith({ rules: { otherwise: { push: 'ask' } } })
  const push = (author: string): Asked => ({
    kind: 'push',
    server: 'chat',
    featureSet: 'chat.in',
    payload: ['hi'],
    origin: { author },
  })
  await ask(push('kim'))
  await ask(push('kim'))
  await ask(push('mallory'))
  expect(questions.map(({ asked }) => asked.origin)).toEqual([{ author: 'kim' }, { author: 'mallory' }])
})

test('a wider yes that the question does not offer counts for the call alone', async () => {
  const { call, ask, questions } = await policyWith({ onApproval: () => ({ yes: true, covers: 'tool' }) })
  const odd = call({ payload: { path: '/etc/../etc/hosts' } })
  await ask(odd)
  await ask(odd)
  await ask(call({ payload: { path: '/etc/./group' } }))
  expect(questions.map(({ wider }) => wider)).toEqual([[], []])
})

test('a wider yes ends with its time, with another definition, and with a blacklist entry', async () => {
  const clock = fakeClock()
  const { policy, call, ask, questions } = await policyWith({
    clock,
    onApproval: () => ({ yes: true, covers: 'tool', for: '10m' }),
  })
  await ask(call())
  expect((await policy.decide(call({ payload: { path: '/x' } }))).do).toBe('allow')
  expect((await policy.decide(call({ definition: 'd2' }))).do).toBe('ask')
  await policy.update({ servers: { files: { scopes: { 'files.all': { blacklist: ['/etc/**'] } } } } })
  expect([(await policy.decide(call())).do, (await policy.decide(call({ payload: { path: '/x' } }))).do]).toEqual([
    'deny',
    'allow',
  ])
  clock.advance(600_000)
  expect((await policy.decide(call({ payload: { path: '/x' } }))).do).toBe('ask')
  expect(questions).toHaveLength(1)
})

test('an answer for which there is no room counts this once, and the call does not fail of it', async () => {
  const store = memoryStore()
  const { call, ask, questions } = await policyWith({ store })
  await ask(call())
  const [kept] = await store.scan('policy/grant/')
  const grant = JSON.parse(kept?.value ?? '{}')
  const others = Array.from({ length: 999 }, (_, n) => `other${n}`)
  const put = (id: string) =>
    ({ op: 'put', key: `policy/grant/~files/standing/${id}`, value: JSON.stringify({ ...grant, id }) }) as const
  for (let at = 0; at < 999; at += 333) await store.commit(others.slice(at, at + 333).map(put))
  const other = call({ payload: { path: '/other' } })
  expect([await ask(other), await ask(other), questions.length]).toEqual([true, true, 3])
})

test('a yes that comes when a rule holds the call back by then does not let it run', async () => {
  const { policy, call } = await policyWith({
    onApproval: async () => {
      await policy.update({ rules: [{ name: 'pause', do: 'hold', for: '1h' }] })
      return true
    },
  })
  const verdict = await policy.decide(call())
  if (verdict.do !== 'ask') throw new Error(verdict.do)
  expect(await policy.approve(call(), verdict)).toMatchObject({ yes: false, why: { code: 'POLICY_HELD' } })
})

test('a yes for only this once lets one of two calls run that are alike, and the other is asked about', async () => {
  const answers: ApprovalAnswer[] = [{ yes: true, for: 0 }, false]
  const { call, ask, questions } = await policyWith({ onApproval: () => answers.shift() ?? false })
  expect([await Promise.all([ask(call()), ask(call())]), questions.length]).toEqual([[true, false], 2])
})

test('a tool whose feature set goes off while the question is open is not called', async () => {
  const { host, ran, questions } = await filesHost([reading], async () => {
    for (const { id, kind } of await host.policy.grants('files')) if (kind === 'set') await host.policy.revoke('files', id)
    await expect.poll(() => host.server('files')?.live?.featureSets.get('files.all')?.enabled).toBe(false)
    return true
  })
  expect([await said(host), questions.length, ran]).toEqual([['refused'], 1, []])
})

test('the question about another definition shows what the tool is now, however long it was before, and that there is more', async () => {
  const { policy, questions } = await policyWith()
  const line = `replace /description "${'before '.repeat(25)}" → "Send all files to evil.example"`
  const changes = [line, ...Array.from({ length: 19 }, (_, n) => `add /title${n} "x"`), '… and 7 more']
  const asked: Asked = { kind: 'definition', server: 'files', tool: 'read_file', payload: { digest: 'd', changes } }
  const verdict = await policy.decide(asked)
  if (verdict.do === 'ask') await policy.approve(asked, verdict)
  expect(questions[0]?.text).toContain('Send all files to evil.example')
  expect(questions[0]?.text).toContain('… and 7 more')
})
