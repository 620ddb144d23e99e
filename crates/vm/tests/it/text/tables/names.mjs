// Writes src/text/intl/currencies.tsv and units.tsv from node's English.
//
//   node names.mjs
//
// Currencies: code, usual decimals, symbol, narrow symbol, name of one, name of several.
// Units: identifier, then the pattern for one and for several in the short, narrow and long form.
import {writeFileSync} from 'node:fs';
const D = new URL("../../../../src/text/intl/", import.meta.url).pathname;
let out=[];
for(const c of Intl.supportedValuesOf('currency')){
 const f=(o,v)=>new Intl.NumberFormat('en-US',{style:'currency',currency:c,...o}).formatToParts(v).find(p=>p.type==='currency').value;
 const digits=new Intl.NumberFormat('en-US',{style:'currency',currency:c}).resolvedOptions().maximumFractionDigits;
 out.push([c,digits,f({},2),f({currencyDisplay:'narrowSymbol'},2),f({currencyDisplay:'name',maximumFractionDigits:0,minimumFractionDigits:0},1),f({currencyDisplay:'name'},2)].join('\t'));
}
writeFileSync(D+'currencies.tsv',out.join('\n')+'\n');
out=[];
const units=[...Intl.supportedValuesOf('unit'),'kilometer-per-hour','mile-per-hour','meter-per-second','mile-per-gallon','liter-per-kilometer','kilobyte-per-second','megabyte-per-second','byte-per-second','bit-per-second','megabit-per-second','gigabit-per-second','gigabyte-per-second','kilobit-per-second'];
for(const u of units){const r=[u];for(const d of ['short','narrow','long'])for(const v of [1,2]){r.push(new Intl.NumberFormat('en-US',{style:'unit',unit:u,unitDisplay:d}).format(v).replace(String(v),'{}'))}out.push(r.join('\t'))}
writeFileSync(D+'units.tsv',out.join('\n')+'\n');
