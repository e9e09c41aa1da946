/** Phrases that paraphrase, or that are out of use, and what plain technical English says instead. */

export interface Phrase {
  /** A space in it is any white space, a line break included. */
  readonly pattern: RegExp
  readonly instead: string
}

const be = '(?:is|are|was|were|be|been|being)'

/** Case does not matter, except where `exact` is given. */
function phrase(pattern: string, instead: string, exact = false): Phrase {
  return { pattern: new RegExp(pattern.replaceAll(' ', '\\s+'), exact ? 'g' : 'gi'), instead }
}

/** At the beginning of a sentence. */
const start = '(?<=[.!?] )'
const verbs = 'is|are|was|were|has|have|had|can|cannot|may|must|will|does|do|gets|goes|comes|calls|asks|sends|stays|needs'
/** What follows is no noun, so the phrase ends here. */
const end = '(?=\\s*(?:[.,;:()|]|$|(?:and|or|to|in|for|with|at|by|on|that|which|as|is|are|so|when|if|until)\\b))'

export const PHRASES: readonly Phrase[] = [
  phrase('\\bfor good\\b(?! reason)', 'permanently'),
  phrase('\\bfor ever\\b', 'forever, or without end'),
  phrase('\\bat the moment\\b', 'now, or nothing'),
  phrase('\\blet(?:s|ting)? go of\\b', 'release'),
  phrase('\\bwhoever\\b', 'the role: the operator, the client that …, anyone who …'),
  phrase('\\btold\\b(?! apart)', 'notified, informed, shown, sent or reported'),
  phrase(`\\bof (?:its|their) own${end}`, 'own, separate, or a … that only … has'),
  phrase("\\bof one's own\\b", 'your own'),
  phrase('\\b(?:take|takes|taken|taking|took) back\\b', 'undo, roll back or withdraw'),
  phrase('\\bgiven to\\b', 'passed to, sent to or shown to'),
  phrase('\\b(?:wished|wishes)(?: for)?\\b', 'requested, request'),
  phrase('\\banew\\b', 'again'),
  phrase('\\b(?:a|for a|after a) while\\b', 'the duration'),
  phrase('\\bby (?:itself|themselves)\\b', 'automatically, alone, or on its own'),
  phrase('\\bstands?\\b(?! for\\b)', 'is, or is written'),
  phrase('\\b(?:go|goes|going|gone|went) on\\b(?! (?:and|or) off)', 'continue'),
  phrase(
    `(?<!\\bthere )(?<!\\bhere )\\b${be} no (?!longer\\b|more\\b|such\\b|other\\b|different\\b|less\\b|larger\\b|better\\b)`,
    'is not a',
  ),
  phrase('\\blest\\b', 'so that … not'),
  phrase(
    '\\b(?:amid|amidst|amongst|whilst|hitherto|henceforth|hereby|thereof|therein|whereupon|wherein|whereby)\\b',
    'during, among, while, until now, …',
  ),
  phrase('\\bhear(?:s|d)? of\\b', 'learn about, or is notified of'),
  phrase('\\bthat which\\b', 'what, or the thing itself'),
  phrase('\\bfor (?:lack|want) of\\b', 'without'),
  phrase('\\bone (?:may|has to|wants|would)\\b', 'you can, you must'),
  phrase('\\b(?:is|are) to be\\b', 'must be, or will be'),
  phrase('\\bso as (?:not )?to\\b', 'to'),
  phrase('\\bin order to\\b', 'to'),
  phrase('\\bby means of\\b', 'with, or by'),
  phrase('\\ball the same\\b', 'nevertheless'),
  phrase(`\\b${be} said\\b`, 'stated, declared or sent'),
  phrase('\\bcomes? to be\\b', 'is created'),
  phrase('\\bbr(?:ing|ings|ought|inging) about\\b', 'cause'),
  phrase('\\bhas (?:the last|no|a) (?:word|say)\\b', 'decides, or is ignored'),
  phrase('\\b(?:lets?|letting) (?:\\w+ )?in\\b', 'admit, accept or allow'),
  phrase('\\bshuts? out\\b', 'reject'),
  phrase('\\band the like\\b', 'and similar …'),
  phrase('\\bbe it\\b', 'whether'),
  phrase('\\bin the midst\\b', 'in the middle, or during'),
  phrase('\\bat hand\\b', 'available'),
  phrase('\\bin its stead\\b|\\bin their stead\\b', 'instead'),
  phrase('\\bbeside\\b', 'next to, or in addition to'),
  phrase('\\bwrite down\\b|\\bwritten down\\b|\\bwrites down\\b', 'record, or store'),
  phrase('\\bof old\\b|\\bof then\\b', 'earlier, former'),
  phrase('\\bmake(?:s)? good\\b', 'repair'),
  phrase('\\bhold(?:s)? good\\b', 'is valid'),
  phrase(`${start}Who (?:${verbs})\\b(?![^.!?]*\\?)`, 'a client that …, or the role', true),
  phrase(
    `${start}What [^.:;!?|¤]*\\b(?:${verbs})\\b[^.:;!?|¤]*\\b(?:${verbs})\\b(?![^.!?]*\\?)`,
    'the noun: data that …, a call that …',
    true,
  ),
]
