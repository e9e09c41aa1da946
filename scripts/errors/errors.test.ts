import { describe, expect, it } from 'vitest'
import { errorPages, meaningFaults } from './pages.ts'
import { Program } from './program.ts'
import { errorNumbers, extract, type Found } from './sites.ts'

const problems = `
export class Problem extends Error {
  constructor(code: string, message: string, more: { suggestion?: string } = {}) {
    super(message)
    this.code = code
    this.suggestion = more.suggestion
  }
}
export function problem(code: string, message: string, more?: object) { return new Problem(code, message, more) }
`

function read(text: string, path = 'src/engine/a.ts'): ReturnType<typeof extract> {
  return extract(
    new Program(
      new Map([
        ['src/core/problem.ts', problems],
        [path, `import { Problem, problem } from '../core/problem.ts'\n${text}`],
      ]),
    ),
  )
}

function messages(text: string): readonly string[] {
  return read(text).found.map(({ message }) => message)
}

describe('the messages of errors', () => {
  it('are found with their code and remedy, through the function that makes them', () => {
    const { found } = read(`throw problem('INVALID_INPUT', \`\${clip(name)} is too short\`, { suggestion: 'Use 3 letters' })`)
    expect(found).toMatchObject([
      {
        type: 'Problem',
        code: 'INVALID_INPUT',
        message: '{name} is too short',
        remedy: 'Use 3 letters',
        path: 'src/engine/a.ts',
      },
    ])
  })

  it('are found at every caller of a function that takes the message', () => {
    const text = `
      function invalid(where: string, why: string) { return problem('INVALID_INPUT', \`\${where} \${why}\`) }
      throw invalid('The title', 'must have a value')
      throw invalid(place, 'must be a text')`
    expect(messages(text)).toEqual(['The title must have a value', '{where} must be a text'])
  })

  it('hold every phrase that a choice can put into them, and the values of constants', () => {
    expect(messages(`throw new TypeError(many ? 'They are open' : 'It is open')`)).toEqual(['They are open', 'It is open'])
    expect(messages(`const limit = 'the limit is 3'\nthrow new RangeError(\`Too many: \${limit}\`)`)).toEqual([
      'Too many: the limit is 3',
    ])
    expect(messages(`const texts = { a: 'First text', b: 'Second text' }\nthrow new Error(texts['b'])`)).toEqual(['Second text'])
  })

  it('are found in objects that say what to do', () => {
    expect(read(`faults.push({ message: 'The entry is no object', fix: 'Write { }' })`).found).toMatchObject([
      { type: undefined, message: 'The entry is no object', remedy: 'Write { }' },
    ])
  })

  it('may pass on the words of another error, but no others that the source does not hold', () => {
    expect(read(`throw new TypeError(error.message)`).unreadable).toEqual([])
    expect(read(`throw new TypeError(assembled())`).unreadable).toEqual(['src/engine/a.ts:2: new TypeError(assembled())'])
  })
})

describe('the pages', () => {
  const found: readonly Found[] = read(`throw problem('UNSUPPORTED', 'No a|b here', { suggestion: 'Use c' })`).found

  it('show a message with its code, remedy and file, and the index leads to it', () => {
    const [index, ...rest] = errorPages(found, new Map())
    const protocol = rest.find(({ path }) => path.endsWith('/protocol.md'))
    expect(protocol?.text).toContain('| `UNSUPPORTED` | No a\\|b here | Use c | `engine/a` |')
    expect(index?.text).toMatch(/`UNSUPPORTED` \| `permanent` .* \[protocol\]\(reference\/errors\/protocol\.md\)/)
  })

  it('continue on another page before they are longer than 250 lines', () => {
    const many = Array.from({ length: 300 }, (_, at): Found => ({ ...(found[0] as Found), message: `Message number ${at}` }))
    const pages = errorPages(many, new Map())
    const lines = pages.map(({ text }) => text.split('\n').length)
    expect(Math.max(...lines)).toBeLessThanOrEqual(250)
    expect(pages.map(({ text }) => text).join('')).toContain('Message number 299 |')
    expect(pages.map(({ path }) => path)).toContain('docs/reference/errors/protocol-2.md')
  })

  it('need a meaning for every code, and no meaning without its code', () => {
    const stranger: Found = { ...(found[0] as Found), code: 'NEVER_EXPLAINED' }
    const faults = meaningFaults([stranger], new Map())
    expect(faults).toContain('src/engine/a.ts:2: NEVER_EXPLAINED has no meaning in scripts/errors/meanings.ts')
    expect(faults).toContain('scripts/errors/meanings.ts: UNSUPPORTED is the code of no error; remove it')
  })

  it('read the numbers that features give to kinds', () => {
    const program = new Program(
      new Map([['src/a.ts', `export const errors = { gone: { default: -32002, '2026-07-28': -31002 } }`]]),
    )
    expect(errorNumbers(program)).toEqual(new Map([['gone', { default: -32002, '2026-07-28': -31002 }]]))
  })
})
