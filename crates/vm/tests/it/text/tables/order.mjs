// Writes src/text/unicode/order.txt: how node's English collator orders single code points.
//
//   node order.mjs > ../../../../src/text/unicode/order.txt
//
// `ignored` and `marks` come first; `long` names a code point, what it stands for and the level at which the two
// differ; then one line for each primary weight, in order. Within a line `<` is a difference of accents, `,` one of
// case or width, `=` none. `punct` lines are those that `ignorePunctuation` skips.
const V=new Intl.Collator("en-US",{sensitivity:"variant"}), A=new Intl.Collator("en-US",{sensitivity:"accent"}), B=new Intl.Collator("en-US",{sensitivity:"base"});
const cps=[];
const ranges=[[0,0x52f],[0x1e00,0x1eff],[0x2000,0x23ff],[0x2460,0x27bf],[0x3000,0x30ff]];
const out=[];
for(const [a,b] of ranges)for(let c=a;c<=b;c++){
  const s=String.fromCharCode(c);
  if(!/\p{Assigned}/u.test(s))continue;
  const d=s.normalize("NFD");
  if(d!==s){ // canonical decomposable: only if it's a contraction of its own
    if(A.compare(s,d)===0 && B.compare(s,[...d][0])===0) continue;
  }
  out.push(s);
}
// classify: ignorable; mark (primary ignorable); expansion; own
const ign=[],marks=[],own=[],exp=[];
for(const s of out){
  if(V.compare(s,"")===0){ign.push(s);continue}
  if(B.compare(s,"")===0){marks.push(s);continue}
  own.push(s);
}
// expansion: primary equals that of a longer string: check NFKD
const hex=s=>[...s].map(c=>c.codePointAt(0).toString(16)).join("+");
const real=[];
for(const s of own){
  const k=s.normalize("NFKD");
  if(k!==s.normalize("NFD")&&[...k].length>1&&B.compare(s,k)===0){exp.push([s,k]);continue}
  const spec={"\u00e6":"ae","\u00c6":"AE","\u0153":"oe","\u0152":"OE","\u00df":"ss","\u1e9e":"SS","\u0132":"IJ","\u0133":"ij"}[s];
  if(spec&&B.compare(s,spec)===0){exp.push([s,spec]);continue}
  real.push(s);
}
real.sort((x,y)=>B.compare(x,y)||A.compare(x,y)||V.compare(x,y)||(x<y?-1:1));
marks.sort((x,y)=>A.compare(x,y)||V.compare(x,y)||(x<y?-1:1));
const lines=[];
lines.push("ignored "+ign.map(hex).join(" "));
const grp=(list)=>{let r="";for(let i=0;i<list.length;i++){ if(i){r+=A.compare(list[i-1],list[i])!==0?"<":(V.compare(list[i-1],list[i])!==0?",":"=");} r+=hex(list[i]);}return r};
lines.push("marks "+grp(marks));
for(const [s,k] of exp)lines.push("long "+hex(s)+" "+hex(k)+" "+(A.compare(s,k)===0?(V.compare(s,k)===0?"=":","):"<"));
let i=0;const P=new Intl.Collator("en-US",{ignorePunctuation:true});
while(i<real.length){let j=i+1;while(j<real.length&&B.compare(real[i],real[j])===0)j++;
 const g=real.slice(i,j); lines.push((P.compare(g[0],"")===0?"punct ":"order ")+grp(g)); i=j;}
console.log(lines.join("\n"));
