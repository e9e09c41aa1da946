import { expect, onTestFinished, test } from 'vitest'
import type { Command, Target } from '../../client/target.ts'
import { memoryStore } from '../../stores/index.ts'
import { Launches, launchChanges, launchOf, launchRecord } from './launches.ts'

const command: Command = {
  command: 'npx',
  args: ['-y', '@example/files', '--token=hush-hush'],
  cwd: '/srv/files',
  env: { API_KEY: 'hush-hush', NODE_OPTIONS: '--max-old-space-size=100' },
}

async function changes(before: Target, now: Target): Promise<readonly string[]> {
  const [was, is] = [await launchOf(before), await launchOf(now)]
  if (was === undefined || is === undefined) throw new Error('Nothing is known of it')
  return launchChanges(launchRecord(was), is)
}

test.each<[string, Partial<Command>, readonly string[]]>([
  ['another command', { command: 'bash' }, ['changed command: "bash", was "npx"']],
  ['another argument', { args: ['-y', '@examp1e/files', '--token=hush-hush'] }, ['changed argument 2: "@examp1e/files"']],
  ['one more argument', { args: [...(command.args ?? []), '--eval'] }, ['new argument 4: "--eval"']],
  ['one argument less', { args: ['-y', '@example/files'] }, ['removed argument 3']],
  ['another folder', { cwd: '/tmp' }, ['changed folder: "/tmp", was "/srv/files"']],
  ['one more variable', { env: { ...command.env, EXTRA: 'x' } }, ['new variable EXTRA: "…"']],
  [
    'another value of a variable that steers programs',
    { env: { ...command.env, NODE_OPTIONS: '--require ./evil.cjs' } },
    ['changed variable NODE_OPTIONS: "--require ./evil.cjs"'],
  ],
])('%s is a change, and is told as such', async (_, part, told) => {
  expect(await changes(command, { ...command, ...part })).toEqual(told)
})

test.each([
  'PATH',
  'LD_PRELOAD',
  'DYLD_INSERT_LIBRARIES',
  'PYTHONPATH',
  'PYTHONSTARTUP',
  'BASH_ENV',
  'npm_config_registry',
  'NODE_PATH',
])('the value of %s counts', async name => {
  expect(await changes({ ...command, env: { [name]: 'a' } }, { ...command, env: { [name]: 'b' } })).toHaveLength(1)
})

test('another value of any other variable is none: secrets are changed for new ones', async () => {
  expect(await changes(command, { ...command, env: { ...command.env, API_KEY: 'another' } })).toEqual([])
})

test('of an address its place counts, and its query without being told', async () => {
  const before = 'https://mcp.example/mcp?key=hush-hush'
  expect(await changes(before, new URL(before))).toEqual([])
  expect(await changes(before, 'https://mcp.example.evil/mcp?key=hush-hush')).toEqual([
    'changed address: "https://mcp.example.evil/mcp", was "https://mcp.example/mcp"',
  ])
  expect(await changes(before, 'https://mcp.example/mcp?key=other')).toEqual(['changed query: "…"'])
  expect(await changes('wss://mcp.example/ws', 'ws://mcp.example/ws')).toHaveLength(1)
  expect(await changes(before, command)).toHaveLength(9)
})

test('nothing is kept in plain text that may be a secret', async () => {
  for (const target of [command, 'https://ada:hush-hush@mcp.example/mcp?key=hush-hush']) {
    const launch = await launchOf(target)
    expect(JSON.stringify(launch && launchRecord(launch))).not.toContain('hush-hush')
  }
})

test('a server that is held is started again when its own launch is approved elsewhere, not when another one is written', async () => {
  const store = memoryStore()
  const process = () => {
    const again: string[] = []
    const nothing = () => {}
    const relaunch = (upstream: string) => void again.push(upstream)
    const launches = new Launches({ store, mode: 'block', approveBy: () => '', held: nothing, changed: nothing, relaunch })
    onTestFinished(() => launches.close())
    return { launches, again }
  }
  const [one, other] = [process(), process()]
  await one.launches.admit('files', command)
  for (const { launches } of [one, other])
    await expect(launches.admit('files', { ...command, command: 'bash' })).rejects.toThrow('differs from the approved one')
  await one.launches.admit('wiki', 'https://wiki.example/mcp')
  const [held] = await one.launches.waiting()
  if (held === undefined) throw new Error('Nothing is held')
  expect(await one.launches.answer(held, true)).toBe(true)
  await expect.poll(() => other.again).toEqual(['files'])
  expect(one.again).toEqual(['files'])
})
