/** A call that waits for the operator, as its caller and the operator see it in a terminal each. */
import { expect, test } from 'vitest'
import { trial } from '../../../test/cli/trial.ts'

const server = `
import { createServer, jsonSchema } from 'vivarium/server'
const server = createServer({ name: 'bank', version: '1.0.0' })
server.tool('pay', { input: jsonSchema({ type: 'object' }) }, ({ to }) => 'paid ' + to)
await server.stdio()
`
const file = (wait: string): string => `
store: "sqlite:a.db"
servers: { bank: { command: ${JSON.stringify(process.execPath)}, args: [bank.mjs] } }
rules: [{ name: money, when: { tool: pay }, do: ask, approver: operator${wait} }]
`

test('the caller is told that its call waits; once it has gone, the operator is told what an approval is good for', {
  timeout: 120_000,
}, async () => {
  const it = await trial({ 'bank.mjs': server, 'gateway.yaml': file(', wait: 10m') })
  const { until } = it.start(['gateway', 'gateway.yaml', '--port', '0', '--format', 'json'])
  const [, url = ''] = await until(/"url":"([^"]+)"/)
  const caller = it.start(['call', url, 'pay', 'to=eve'])
  await caller.until(/^pay waits for approval by the operator of the server$/m, 'err')
  const approvals = (...more: string[]) => it.run(['gateway', 'approvals', 'gateway.yaml', ...more])
  await expect.poll(async () => (await approvals()).out, { timeout: 30_000 }).toContain('; the caller is waiting')
  caller.child.kill('SIGINT')
  expect(await caller.ended).toBe(130)
  await expect.poll(async () => (await approvals()).out, { timeout: 30_000 }).toContain('; the caller has to repeat the call')
  const [id = ''] = (await approvals()).out.split('\n')
  const { out } = await approvals('--approve', id, '--as', 'kim')
  expect(out).toBe(
    `Approved by kim: ${id}\n  The caller does not wait any more. If it repeats exactly this call within 5 minutes, with this id (vivarium call … --approval-id '${id}'), the call runs once without a new question.\n`,
  )
  const again = await it.run(['call', url, 'pay', 'to=eve', '--approval-id', id])
  expect([again.code, again.out]).toEqual([0, 'paid eve\n'])
})

test('a call that is refused at once says who has to approve it, and how the command is repeated then', {
  timeout: 120_000,
}, async () => {
  const it = await trial({ 'bank.mjs': server, 'gateway.yaml': file('') })
  const { until } = it.start(['gateway', 'gateway.yaml', '--port', '0', '--format', 'json'])
  const [, url = ''] = await until(/"url":"([^"]+)"/)
  const { code, err } = await it.run(['call', url, 'pay', 'to=eve'])
  const [, id = ''] = /--approval-id '(~[^']+)'/.exec(err) ?? []
  expect([code, err]).toEqual([5, expect.stringContaining('pay requires approval by the operator of the server')])
  const refused = await it.run(['gateway', 'approvals', 'gateway.yaml', '--refuse', id, '--as', 'kim'])
  expect(refused.out).toContain('The same call is refused for 15 minutes, without a question.')
  const again = await it.run(['call', url, 'pay', 'to=eve', '--approval-id', id])
  expect([again.code, again.err]).toEqual([5, expect.stringContaining('The operator of the server refused this call of pay')])
})
