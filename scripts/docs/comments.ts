/** A doc comment for readers of a page: its text, the default value that it names, and its examples. */

export interface Explained {
  readonly text: string
  /** What happens where the option is left out; undefined: the comment does not say. */
  readonly usual: string | undefined
  readonly examples: readonly string[]
  /** What to use instead of something that will go. */
  readonly deprecated: string | undefined
  /** May change in any version. */
  readonly isExperimental: boolean
}

/** A longer default stays a sentence of the text. */
const longest = 80

/** A sentence that says nothing but the default. */
const DEFAULT = /(?:^|(?<=[.)] ))(?:Default:? (?!and )|By default )((?:[^.`]|`[^`]*`|\.(?=\S))+)\.(?:\s|$)/

export function explain(comment: string | undefined): Explained {
  const { text, tags } = split(comment ?? '')
  const tagged = tags.find(({ name }) => name === 'default')?.text
  const sentence = DEFAULT.exec(text)
  const usual = tagged !== undefined ? `\`${tagged}\`` : sentence?.[1]?.trim()
  const isShort = usual !== undefined && usual.length <= longest
  const isMoved = tagged === undefined && sentence !== null && isShort
  const rest = isMoved ? `${text.slice(0, sentence.index)}${text.slice(sentence.index + sentence[0].length)}` : text
  const named = (name: string): string | undefined => tags.find(tag => tag.name === name)?.text
  return {
    // A comment that says only the default still needs a text.
    text: (rest.trim() === '' ? text : rest).trim(),
    usual: isShort ? usual : undefined,
    examples: tags.filter(({ name }) => name === 'example').map(tag => tag.text),
    deprecated: named('deprecated'),
    isExperimental: named('experimental') !== undefined,
  }
}

interface Tag {
  readonly name: string
  readonly text: string
}

/** Lines of a tag keep their breaks and indents, because an example is code. */
function split(comment: string): { readonly text: string; readonly tags: readonly Tag[] } {
  const paragraphs: string[][] = [[]]
  const tags: { name: string; lines: string[] }[] = []
  for (const line of linesIn(comment)) {
    const [, name, rest = ''] = /^@(\w+)\s*(.*)$/.exec(line) ?? []
    const last = tags.at(-1)
    if (name !== undefined) tags.push({ name, lines: rest === '' ? [] : [rest] })
    else if (last !== undefined) last.lines.push(line)
    else if (line === '') paragraphs.push([])
    else paragraphs.at(-1)?.push(line)
  }
  return {
    text: paragraphs
      .map(lines => lines.join(' '))
      .filter(Boolean)
      .join('\n\n'),
    tags: tags.map(({ name, lines }) => ({ name, text: lines.join('\n').trim() })),
  }
}

/** Indented as it was within the comment. */
function linesIn(comment: string): readonly string[] {
  return comment
    .replace(/^\/\*\*|\s*\*\/$/g, '')
    .split('\n')
    .map((line, at) => (at === 0 ? line.trim() : line.replace(/^\s*\* ?/, '').trimEnd()))
}
