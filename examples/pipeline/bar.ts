/** A bar in a terminal that grows; a line for each quarter where nobody looks. */

export interface Bar {
  to(done: number, total: number): void
  /** Leaves it as it is. */
  end(): void
}

const width = 40

export function bar(name: string, out: NodeJS.WriteStream = process.stdout): Bar {
  let quarters = 0
  let drawn = false
  const draw = (part: number): void => {
    const full = Math.round(part * width)
    out.write(`\r  ${name} ${'█'.repeat(full)}${'░'.repeat(width - full)} ${percent(part)} %`)
    drawn = true
  }
  return {
    to: (done, total) => {
      const part = total === 0 ? 1 : done / total
      if (out.isTTY) return draw(part)
      const now = Math.floor(part * 4)
      if (now > quarters) out.write(`  ${name} ${percent(now / 4)} %\n`)
      quarters = Math.max(now, quarters)
    },
    end: () => {
      if (drawn) out.write('\n')
    },
  }
}

function percent(part: number): string {
  return String(Math.floor(part * 100)).padStart(3)
}
