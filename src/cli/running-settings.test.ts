import { expect, onTestFinished, test } from 'vitest'
import type { Why } from '../core/suggestion.ts'
import { readConfig } from '../host/config/read.ts'
import { createHost } from '../host/create.ts'
import { scripted } from '../host/models/scripted.ts'
import { RunningSettings } from './host-settings.ts'

const file = '/config/mcp.json'
const budget = { name: 'daily', counts: 'requests', most: 5, per: '1d' }
const textOf = (host: unknown): string => JSON.stringify({ mcpServers: {}, host })

async function running(before: unknown, agrees = true) {
  const told: Why[] = []
  const settings = new RunningSettings({
    written: before as Record<string, unknown>,
    file,
    env: {},
    told: what => told.push(what),
  })
  const host = await createHost({ model: scripted([]), servers: { idle: 'http://127.0.0.1:1/' }, startMs: 1 })
  onTestFinished(() => host.close())
  settings.host = host
  const no: Why = { code: 'NO', rule: 'trust', message: 'No', fix: 'Agree' }
  const onConfig = settings.after(() => (agrees ? undefined : no))
  const change = async (after: unknown) => onConfig(await readConfig(textOf(after), file), textOf(after))
  return { host, told, change }
}

test('a changed policy and changed budgets hold at once; of what needs a restart it is said', async () => {
  const { host, told, change } = await running({ system: 'Be kind' })
  const rules = [{ name: 'never', do: 'deny', when: { kind: 'tool' } }]
  expect(await change({ system: 'Be brief', policy: { rules }, budgets: [budget] })).toBeUndefined()
  expect(host.policy.explain({ kind: 'tool', server: 'idle', tool: 'x' }).verdict).toMatchObject({ why: { rule: 'never' } })
  expect(await host.budgets()).toMatchObject([{ limit: { name: 'daily', most: 5 } }])
  expect(told).toMatchObject([{ code: 'RESTART_NEEDED', rule: 'host.system' }])
  // What is gone from the file is gone from the host, and what did not change is not spoken of again.
  expect(await change({ system: 'Be brief' })).toBeUndefined()
  expect(await host.budgets()).toEqual([])
  expect(host.policy.explain({ kind: 'tool', server: 'idle', tool: 'x' }).verdict).not.toMatchObject({ why: { rule: 'never' } })
  expect(told).toHaveLength(1)
})

test('a section that cannot be used changes nothing, and says what is wrong with it', async () => {
  const { host, change } = await running({ budgets: [budget] })
  await change({ budgets: [budget, { ...budget, name: 'other' }] })
  for (const broken of [
    { budgets: [{ ...budget, most: -1 }] },
    { polcy: {} },
    { policy: { rules: [{ do: 'deny' }] }, budgets: [] },
  ])
    expect(await change(broken)).toMatchObject({ code: 'CONFIG_INVALID', rule: 'config.host' })
  expect(await host.budgets()).toHaveLength(2)
})

test('without the yes of whoever is asked nothing is applied', async () => {
  const { host, change } = await running({}, false)
  expect(await change({ budgets: [budget] })).toMatchObject({ code: 'NO' })
  expect(await host.budgets()).toEqual([])
})
