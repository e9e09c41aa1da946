/** Sealed tokens: whatever is changed in one, it opens to what was sealed or not at all, and says nothing about why. */
import { createSeal, HandleError } from '../../../src/core/handle.ts'
import { demand, demandSame, target } from '../target.ts'

const secret = 'a secret of the fuzzer, and of nobody else'
const seal = createSeal({ secrets: secret })
const purpose = { kind: 'cursor', principal: 'ann', audience: 'tools/list' }
const data = { position: 42 }
const good = await seal.seal({ ...purpose, expiresAt: Date.now() + 3_600_000, data })
const late = await seal.seal({ ...purpose, expiresAt: Date.now() - 1, data })
const other = await createSeal({ secrets: `${secret}!` }).seal({ ...purpose, expiresAt: Date.now() + 3_600_000, data })

interface Input {
  readonly token: unknown
  readonly purpose: typeof purpose
}

export const handles = target<Input>({
  name: 'handles',
  make: source => {
    const base = source.pick([good, good, good, late, other])
    const bytes = Buffer.from(base, 'base64url')
    for (let flips = source.int(3); flips > 0; flips--) {
      const at = source.int(bytes.length)
      bytes[at] = (bytes[at] ?? 0) ^ (1 << source.int(8))
    }
    const flipped = bytes.toString('base64url')
    const shape = source.int(10)
    const token =
      shape === 6
        ? flipped.slice(0, source.int(flipped.length))
        : shape === 7
          ? `${flipped}=`
          : shape === 8
            ? `${flipped} `
            : shape === 9
              ? source.pick([null, 7, {}, [], '', '\u0000', '=', 'A'.repeat(100_000)])
              : flipped
    const bent = source.once(6) ? { [source.pick(['kind', 'principal', 'audience'])]: source.pick(['x', '', 'tools/call']) } : {}
    return { token, purpose: { ...purpose, ...bent } }
  },
  check: async ({ token, purpose: asked }) => {
    try {
      demandSame(await seal.open(token, asked), data, 'what was sealed')
      demand(
        token === good && asked.kind === 'cursor' && asked.principal === 'ann' && asked.audience === 'tools/list',
        () => `opened: ${String(token)}`,
      )
    } catch (error) {
      if (!(error instanceof HandleError)) throw error
      demand(token !== good || JSON.stringify(asked) !== JSON.stringify(purpose), () => 'a good token was refused')
    }
  },
})
