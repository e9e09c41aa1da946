/** Every `vivarium` command in the documentation, in blocks and in sentences, has a verb and options that exist. */
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { Io } from '../../src/cli/io.ts'
import { shapeOf, verbs } from '../../src/cli/program.ts'
import { blocksIn, pages } from './blocks.ts'

interface Command {
  readonly at: string
  readonly line: string
}

const io: Io = {
  input: new PassThrough(),
  output: new PassThrough(),
  errors: new PassThrough(),
  env: {},
  interactive: false,
  colour: false,
  signal: new AbortController().signal,
}

/** Commands of one line of a shell: parts between pipes and the like, without what starts the program. */
function commandsOf(line: string): readonly string[] {
  return line
    .replace(/^\$ /, '')
    .replace(/\s+#.*$/, '')
    .split(/\s(?:&&|\|\|?|;)\s/)
    .map(part => part.trim().replace(/^(?:export )?(?:[A-Z_]+=\S+ )*/, ''))
    .flatMap(part => /^(?:npx )?vivarium (.+)$/.exec(part)?.[1] ?? [])
}

const shown: readonly Command[] = blocksIn('sh', 'console').flatMap(({ at, language, text }) =>
  text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter(line => language === 'sh' || line.startsWith('$ '))
    .flatMap(line => commandsOf(line).map(command => ({ at, line: command }))),
)

const named: readonly Command[] = [...pages].flatMap(([page, markdown]) =>
  [...markdown.replace(/^( *)```[\s\S]*?^\1```/gm, '').matchAll(/(?<!`)`((?:npx )?vivarium [^`]+)`/g)].flatMap(([, code = '']) =>
    commandsOf(code).map(line => ({ at: page, line })),
  ),
)

/** What is wrong with a command; placeholders are in capitals, and what follows `--` is another program's. */
async function faultOf(line: string): Promise<string | undefined> {
  const [own = ''] = line.split(/ -- | --$/)
  const words = own.match(/(?:'[^']*'|"[^"]*"|\S)+/g) ?? []
  const [verb = '', ...rest] = words
  if (verb.startsWith('-') || /^[A-Z…]/.test(verb)) return undefined
  if (verb !== 'help' && !verbs.some(({ name }) => name === verb)) return `there is no verb ${verb}`
  const shape = await shapeOf(verb, rest[0], io)
  for (const [at, word] of rest.entries()) {
    const [flag = '', inline] = word
      .replace(/[,.;:)\]]+$/, '')
      .replace(/^\[/, '')
      .split('=', 2)
    if (!/^--\w/.test(flag) || flag === '--help') continue
    const option = shape?.options.find(({ name }) => name === flag)
    if (option === undefined) return `${verb} has no option ${flag}`
    const value = inline ?? rest[at + 1]
    if (option.choices.length > 0 && value !== undefined && !/^[A-Z]/.test(value) && !option.choices.includes(value))
      return `${flag} of ${verb} cannot be ${value}`
  }
  return undefined
}

describe('commands in the documentation', () => {
  it('are found, in blocks and in sentences', () => {
    expect(shown.length).toBeGreaterThan(40)
    expect(named.length).toBeGreaterThan(40)
  })

  it('have verbs and options that exist', async () => {
    const faults = await Promise.all([...shown, ...named].map(async ({ at, line }) => ({ at, line, fault: await faultOf(line) })))
    expect(faults.filter(({ fault }) => fault !== undefined)).toEqual([])
  })

  it.each([
    ['calll x', 'there is no verb calll'],
    ['call x --jsn {}', 'call has no option --jsn'],
    ['list x --format yaml', '--format of list cannot be yaml'],
    ['gateway pins gateway.yaml --aprove ID', 'gateway has no option --aprove'],
    ['test URL --client "COMMAND" -- node --strange', undefined],
    ['VERB --strange', undefined],
  ])('of which `%s` is one, are judged: %s', async (line, fault) => {
    expect(await faultOf(line)).toBe(fault)
  })
})
